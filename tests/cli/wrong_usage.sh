#!/bin/sh
# Arguments that are missing, too many or out of range, command by command: exit code 2 and one sentence. And what is printed
# where nothing is wrong: a check as JSON, samples that are dropped, a machine with advice.
. tests/cli/support/expect.sh
model=examples/models/mlp.ini
family=tests/data/tokenizers

# refused WHY ARGUMENT...
refused() {
  why=$1
  shift
  expect 2 "$@"
  err "$why"
  silent out
}

refused "say train, encode, decode or samples" tokenizer
refused "the first argument is train, encode, decode or samples, not 'frob'" tokenizer frob
refused "name the files to train on" tokenizer train -o "$work/t.json"
refused "--output FILE is missing" tokenizer train README.md
refused "name a tokenizer and one file at most" tokenizer encode
refused "name a tokenizer and one file at most" tokenizer decode a b c
refused "name a tokenizer and a file with a sample on each line" tokenizer samples a
refused "--text is what encode reads instead of a file" tokenizer encode a b --text c
refused "--text is what encode reads instead of a file" tokenizer decode a --text c
refused "'x' is not a count" tokenizer train README.md --least x -o "$work/t.json"

refused "--to takes pytorch or remat, not 'frob'" convert $model --weights w --to frob -o "$work/w"
refused "--output FILE is missing" convert $model --weights w

refused "--merge is for --save DIR/" train $model --merge --save "$work/w"
refused "--memory-limit takes 'hard', not 'soft'" train $model --memory-limit soft
refused "--rank-timeout takes a number of seconds from 1 on" train $model --rank-timeout 0
refused "--map and --partial are for --weights FILE, which is missing" train $model --partial
refused "--map and --partial are for --weights FILE, which is missing" train $model --map m
refused "--weights-only is for --save FILE, which is missing" train $model --weights-only
refused "--save-every and --save-best need --save FILE, not a folder" train tests/reference/pretrained/llama --save "$work/d/" --save-every 2
refused "--save-every and --save-best need --save FILE, not a folder" train tests/reference/pretrained/llama --save "$work/d/" --save-best "$work/b"
refused "--memory-limit hard needs a budget: give --budget, or set it in the model" train $model --memory-limit hard
expect 0 train $model --steps 2 --rank-timeout 5 -q

refused "ranks" fit $model --ranks 0
refused "ranks" fit $model --ranks 2000000
refused "ranks" fit $model --shard optimizer

# Tokens that are none, and samples without anything to learn.
printf '12 99999999999' >"$work/ids"
expect 3 tokenizer decode $family/gpt2.json "$work/ids"
err "byte 4 is not the beginning of an id"
printf '12 x' >"$work/ids"
expect 3 tokenizer decode $family/gpt2.json "$work/ids"
printf '{"text": "a b c"}\n{"text": ""}\n' >"$work/lines.jsonl"
expect 0 tokenizer samples $family/gpt2.json "$work/lines.jsonl" --length 8
expect 6 tokenizer encode $family/gpt2.json "$work/none"
err "none"
expect 6 tokenizer encode $family/gpt2.json "$work"

# A folder where a file should be, and a file where a folder should be.
: >"$work/file"
expect 6 train tests/reference/pretrained/llama --set dataset.type=random --length 4 --steps 1 --save "$work/file/"
err "file/"
expect 6 plan examples/transformer.json -o "$work/none/plan.json"
err "none"

# A legal plan as JSON.
expect 0 plan examples/transformer.json --strategy full -o "$work/plan.json"
expect 0 check "$work/plan.json" --profile examples/transformer.json --json
out '{"legal": true, "steps": '

# A process that may not use all cores is told so.
if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null; then
  taskset -c "$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$REMAT" doctor --json >"$work/out" 2>"$work/err" || true
  out '"advice": "'
fi
finish
