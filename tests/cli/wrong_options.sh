#!/bin/sh
# Options that do not go together, or not with this kind of file: exit code 2, one sentence, nothing on standard output.
. tests/cli/support/expect.sh
profile=examples/transformer.json
model=examples/models/mlp.ini

# refused WHY ARGUMENT...
refused() {
  why=$1
  shift
  expect 2 "$@"
  err "$why"
  silent out
}

# A mistyped option is answered with the nearest one; what belongs to another option is none.
refused "remat train: there is no option '--budgt'; did you mean --budget? 'remat train --help' lists them" train $model --budgt 8MiB
refused "there is no option '--buget'; did you mean --budget?" train $model --buget=8MiB
refused "there is no option '--seat'; did you mean --set?" plan $model --seat model.seed=3
refused "there is no option '--frobnicate'; 'remat plan --help' lists them" plan $model --frobnicate
refused "there is no option '-Z'" plan $model -Z
for command in "train --steps 1" plan sweep report fit profile bench; do
  # shellcheck disable=SC2086 # a command and its options
  refused "there is no device 'gpu'; there " $command $model --device gpu
done
refused "are only for models" plan $profile --device cpu
refused "are only for models" sweep $profile --device cpu
expect 6 plan $model --graph-out --strategi/x
expect 6 plan $model -o --strategi/x
expect 0 plan $model --strat full
# Behind -- everything is a name; a value may follow its letter at once; -? is --help.
refused "one FILE is enough; '--frob' is a second" plan -- $profile --frob
expect 0 plan --strategy full -- $profile
out "strategy full"
expect 0 plan $profile -b8KiB
out "8 KiB"
expect 0 plan '-?'
out "Usage: remat plan"

refused "FILE is missing" plan
refused "--no-schedule goes with --json" plan $profile --no-schedule
refused "--count takes 'peak' or 'kept', not 'all'" plan $profile --count all
refused "leave out --strategy and --output" plan $profile --compare --strategy full
refused "leave out --strategy and --output" plan $profile --compare --output "$work/plan.json"
for option in --compare "--count kept" --allow-lossy "--method auto"; do
  # shellcheck disable=SC2086 # words
  refused "are only for profiles" plan $model $option
done
for option in "--profile x" "--profile-out x" "--graph-out x" "--graph-plan x" "--batch 2"; do
  # shellcheck disable=SC2086
  refused "are only for models" plan $profile $option
done
expect 0 plan $profile --count peak --budget 8KiB
expect 0 plan $profile --json --no-schedule
out '"peak_bytes"'

refused "FILE is missing" sweep
refused "--json and --csv exclude each other" sweep $profile --json --csv
refused "leave out --json and --csv" sweep $profile --plot --json
refused "leave out --json and --csv" sweep $profile --plot --csv
refused "are only for profiles" sweep $model --method auto
refused "are only for profiles" sweep $model --allow-lossy
refused "are only for models" sweep $profile --profile x
refused "are only for models" sweep $profile --batch 3
refused "is not a count" sweep $profile --threads none

refused "PLAN is missing" check --profile $profile
refused "--profile FILE is missing" check "$work/plan.json"
refused "cannot both come from standard input" check - --profile -
refused "FILE is missing" report
files="$profile $profile $profile $profile $profile $profile $profile $profile $profile $profile"
# shellcheck disable=SC2086
refused "FILEs at most" report $files $files $files $files $files $files $files
expect 0 report $profile --json --no-curve --no-arena --allow-lossy --threads 1 -o "$work/page.json"
silent out
grep -q '"files"' "$work/page.json" || complain "report --json -o writes something else"
expect 6 report $profile --json -o "$work/no such folder/page.json"
expect 6 report $profile -o "$work/no such folder/page.html"
for temperature in "" warm -1 nan; do
  refused "--temperature takes a number from 0 on" generate examples/models/gpt.ini --weights x --temperature "$temperature"
done
for share in "" most 0 1.5 nan; do
  refused "--top-p takes a number above 0 and up to 1, not '$share'" generate tests/reference/pretrained/llama --top-p "$share"
done
many=$(seq 33 | sed 's/.*/--stop &/')
# shellcheck disable=SC2086 # 33 options
refused "--stop can be given 32 times" generate tests/reference/pretrained/llama $many
refused "are for a folder with a language model" generate examples/models/gpt.ini --weights x --top-p 0.5
expect 6 convert $model --weights w --to remat -o ""
err "this is not a file name"
expect 6 convert $model --weights w --to remat -o $model
err "it is also read"

# Names of commands: near ones are suggested, far ones are not.
refused "did you mean train?" trian
refused "there is no command 'x'" x
refused "there is no command" a-word-that-is-longer-than-any-command-could-ever-be
finish
