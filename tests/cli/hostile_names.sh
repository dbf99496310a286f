#!/bin/sh
# Names from files and from the command line reach the terminal without anything that it would act on: no control
# characters, no marks that turn the direction of writing, no bytes that are not UTF-8, no forged lines.
set -eu
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
. tests/cli/support/hostile.sh

# ---- profiles and plans ----
file profile.json <<END
{"format": "remat-profile", "version": 1, "name": "$json_bad", "cost_unit": "$json_bad", "$json_bad": 1, "layers": [
  {"index": 0, "name": "$json_bad", "type": "ffn", "activation_bytes": 400, "output_bytes": 100, "recompute_flops": 9,
   "modes": [{"name": "$json_bad", "activation_bytes": 40, "forward_cost": 10}], "$json_bad": 2},
  {"index": 1, "name": "${json_bad}2", "type": "ffn", "activation_bytes": 400, "output_bytes": 100, "recompute_flops": 9},
  {"index": 2, "name": "${json_bad}3", "type": "ffn", "activation_bytes": 400, "output_bytes": 100, "recompute_flops": 9}]}
END
good plan "$work/profile.json"
good plan "$work/profile.json" --plot
good plan "$work/profile.json" --compare
good plan "$work/profile.json" --json
good plan "$work/profile.json" --budget 900 -o "$work/plan.json"
good sweep "$work/profile.json"
good sweep "$work/profile.json" --json
run plan "$work/profile.json" --budget 1
good check "$work/plan.json" --profile "$work/profile.json"
good report "$work/plan.json" --profile "$work/profile.json" -o "$work/page.html"
good report "$work/plan.json" --json
json_object "$work/out"
clean "the page" "$work/page.html"
clean "a plan file" "$work/plan.json"
sed "s/\"strategy\": \"[a-z]*\"/\"strategy\": \"$(printf %s "$json_bad" | sed 's/\\/\\\\/g')\"/; s/\"op\": *\"[a-z]*\"/\"op\": \"\\\\u001b[31m\"/" \
  "$work/plan.json" >"$work/odd_plan.json"
run check "$work/odd_plan.json" --profile "$work/profile.json"
run report "$work/odd_plan.json" -o "$work/page.html"
for field in type index activation_bytes modes format; do
  sed "s/\"$field\": *\"*[a-z0-9-]*\"*/\"$field\": \"$(printf %s "$json_bad" | sed 's/\\/\\\\/g')\"/" "$work/profile.json" >"$work/odd.json"
  run plan "$work/odd.json"
  run check "$work/plan.json" --profile "$work/odd.json"
done
printf 'index,name,type,activation_bytes,recompute_flops,%s\n0,%s,ffn,4,1,1\n' "$bad" "$bad" | file profile.csv
good plan "$work/profile.csv"
printf 'index,name,type,activation_bytes,recompute_flops\n0,a,%s,4,1\n' "$bad" | file odd.csv
run plan "$work/odd.csv"
printf 'index,name,type,activation_bytes,recompute_flops\n0,a,ffn,\033[31m4,\377\n' | file odd.csv
run plan "$work/odd.csv"

# ---- lifetimes: a file keeps its bytes, a terminal gets none of them ----
printf 'id,lower,upper,size\n%s,0,2,8\nb,1,3,8\n' "$bad" | file lifetimes.csv
expect 0 arena "$work/lifetimes.csv"
grep -qF -- "$bad,0,2,8" "$work/out" || complain "arena changes an id"
good arena "$work/lifetimes.csv" --json
printf 'id,lower,upper,size\n%s,2,0,8\n' "$bad" | file odd.csv
run arena "$work/odd.csv"
printf 'id,lower,upper,%s\n' "$bad" | file odd.csv
run arena "$work/odd.csv"

# ---- models, data, weights, logs ----
spiral_model
sed "s/^\[Model\]/[Model]\nname = $bad/; s/fc1/f$(printf '\302\233\342\200\256')1/g" "$work/spirals.ini" >"$work/odd.ini"
run summary "$work/odd.ini"
run summary "$work/odd.ini" --order
run summary "$work/odd.ini" --json
run fit "$work/odd.ini"
run plan "$work/odd.ini" --strategy full
sed "s/^\[Model\]/[Model]\nname = $bad/" "$work/spirals.ini" >"$work/named.ini"
good summary "$work/named.ini"
good summary "$work/named.ini" --json
json_object "$work/out"
good fit "$work/named.ini"
good fit "$work/named.ini" --json
json_object "$work/out"
good plan "$work/named.ini"
good sweep "$work/named.ini"
good train "$work/named.ini" --steps 1 --log "$work/run.log" --save "$work/w.safetensors"
good train "$work/named.ini" --steps 1 --json
good report "$work/run.log" -o "$work/page.html"
clean "a log" "$work/run.log"
clean "the page of a run" "$work/page.html"
good bench "$work/named.ini" --steps 1
good profile "$work/named.ini" --repeats 1
good eval "$work/named.ini" --weights "$work/w.safetensors"
for odd in "s/tanh/$bad/" "s/unit/$bad/" "s/in : input/in : $bad/" "s/in : input/$bad : input/" "s/fc1 .. fc2/$bad/" \
  "s/spirals.csv/$bad.csv/" "s/0.01/$bad/" "s/Optimizer/$bad/" "s/20/$bad/"; do
  sed "$odd" "$work/spirals.ini" >"$work/odd.ini"
  run fit "$work/odd.ini"
  run train "$work/odd.ini" --steps 1
done
printf '1,2,\033[31m0\n' >"$work/spirals.csv"
run train "$work/spirals.ini" --steps 1
{ printf '{"format": "remat-run", "version": 1, "model": "%s", "%s": 1}\n' "$json_bad" "$json_bad"; } >"$work/odd.log"
run report "$work/odd.log" -o "$work/page.html"

# ---- what is typed ----
for odd in "--$bad" "-$bad" "--budget=$bad" "--strategy=$bad" "--batch=$bad" "--profile=$bad" "--output=/nowhere/$bad" "$bad"; do
  run plan "$odd"
  run fit "$work/spirals.ini" "$odd"
  run train "$work/spirals.ini" "$odd"
  run report "$work/spirals.ini" "$odd"
  run generate "$work/spirals.ini" "$odd"
done
run "$bad"
run layers "$bad"
run doctor "$bad"
run plan "$work/profile.json" -o "/nowhere/$bad"
run train "$work/spirals.ini" --save "/nowhere/$bad" --trace "/nowhere/$bad" --log "/nowhere/$bad"
cp "$work/profile.json" "$work/$bad.json"
good plan "$work/$bad.json"
run arena "$work/$bad.json"
good report "$work/$bad.json" -o "$work/page.html"

# ---- on a terminal: rows of an arena, and what a model writes ----
if command -v script >/dev/null 2>&1; then
  script -qec "'$REMAT' arena '$work/lifetimes.csv'" /dev/null >"$work/tty" </dev/null || complain "arena on a terminal fails"
  tr -d '\r' <"$work/tty" >"$work/out"
  clean "arena on a terminal" "$work/out"
  grep -qF 'x\x1b]0;t\x07\x7f\u0085\u009b\u202e\u2066y,0,2,8' "$work/out" || complain "an id is not shown escaped"
  byte_model
  expect 0 train "$work/bytes.ini" --steps 1 --quiet --save "$work/bytes.safetensors"
  script -qec "'$REMAT' generate '$work/bytes.ini' --weights '$work/bytes.safetensors' --count 300 --seed 1 --prompt abc" \
    /dev/null >"$work/tty" </dev/null || complain "generate on a terminal fails"
  tr -d '\r' <"$work/tty" >"$work/out"
  clean "generate on a terminal" "$work/out"
  out '\x'
  expect 0 generate "$work/bytes.ini" --weights "$work/bytes.safetensors" --count 300 --seed 1 --prompt abc
  LC_ALL=C grep -qP '[\x80-\xff]' "$work/out" || complain "generate changes the bytes where no terminal is"
else
  part_skipped "script is not installed"
fi
finish
