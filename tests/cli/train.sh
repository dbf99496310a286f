#!/bin/sh
# `remat train` as a person uses it.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini

# What will happen, how it goes, what it came to.
expect 0 train "$model" --save "$work/whole.st" --log "$work/log.jsonl"
silent out
err "parameters, batch 20"
err "blocks: "
err "validation loss"
err "80 steps"
grep -q "^memory  *\([0-9,]*\)  *\1  bytes for tensors" "$work/err" || complain "predicted and allocated bytes differ"
json_lines "$work/log.jsonl"
[ "$(grep -c '^{"step": [0-9]*, "epoch"' "$work/log.jsonl")" = 80 ] || complain "the log has not 80 steps"
head -n 1 "$work/log.jsonl" | grep -q '"format": "remat-run"' || complain "the log has no head"
tail -n 1 "$work/log.jsonl" | grep -q '"end": true' || complain "the log has no end"

# Quiet, and the closing figures as JSON.
expect 0 train "$model" --steps 3 -q --json
silent err
tr -d '\n' <"$work/out" >"$work/one-line.json"
echo >>"$work/one-line.json"
json_lines "$work/one-line.json"
out '"steps": 3,'

# Stopped and resumed after an epoch: the same bytes as without the pause, whatever was recomputed and with any number of threads.
expect 0 train "$model" --steps 32 --save "$work/part.st" --log "$work/parts.jsonl" -q --strategy none -j 1
expect 0 train "$model" --resume "$work/part.st" --save "$work/part.st" --log "$work/parts.jsonl" -q --strategy full -j 2
cmp "$work/whole.st" "$work/part.st" || complain "the resumed training ended with other bits"
json_lines "$work/parts.jsonl"
[ "$(grep -c '^{"step": [0-9]*, "epoch"' "$work/parts.jsonl")" = 80 ] || complain "the log was not continued"

# The seed is part of what is resumed.
expect 0 train "$model" --seed 5 --save "$work/whole5.st" -q
expect 0 train "$model" --seed 5 --steps 16 --save "$work/part5.st" -q
expect 0 train "$model" --resume "$work/part5.st" --save "$work/part5.st" -q
cmp "$work/whole5.st" "$work/part5.st" || complain "the seed was not resumed"
! cmp -s "$work/whole.st" "$work/whole5.st" || complain "the seed changes nothing"

# Weights alone are enough to start from, not to resume.
expect 0 train "$model" --steps 5 --save "$work/weights.st" --weights-only -q
expect 0 train "$model" --steps 2 --weights "$work/weights.st" -q
expect 3 train "$model" --resume "$work/weights.st"
err "no state"

# Ctrl-C: the step ends, everything is saved, and it can go on.
"$REMAT" train "$model" --steps 100000000 --save "$work/stopped.st" --log "$work/stopped.jsonl" -j 1 \
  >"$work/out" 2>"$work/err" &
pid=$!
tries=0
until [ "$(grep -c '^{"step"' "$work/stopped.jsonl" 2>"$work/none")" -gt 3 ] 2>"$work/none" || [ $tries -gt 200 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 0 ] || complain "an interrupted training ends with $code: $(tail -n 3 "$work/err")"
err "(interrupted)"
json_lines "$work/stopped.jsonl"
steps=$(grep -c '^{"step": [0-9]*, "epoch"' "$work/stopped.jsonl")
expect 0 train "$model" --resume "$work/stopped.st" --steps $((steps + 2)) -q --json
out '"steps": 2,'

# Errors say what is wrong, with the right code.
expect 2 train
err "MODEL.ini is missing"
expect 6 train "$work/none.ini"
err "none.ini"
expect 2 train "$model" --kernels quick
err "fast and reference"
expect 2 train "$model" --strategy sometimes
err "sometimes"
expect 2 train "$model" --batch 0
expect 2 train "$model" --batch 1000
err "1000"
expect 2 train "$model" --resume "$work/part.st" --weights "$work/part.st"
# What would do nothing is an error.
expect 2 train "$model" --resume "$work/part.st" --seed 5
err "leave out --seed"
expect 2 train "$model" --weights-only
err "--save"
expect 2 train "$model" --plan "$work/plan.json" --strategy full
err "leave out --strategy"
expect 2 train "$model" --batch 0
err "or auto"
expect 4 train "$model" --budget 1KiB
err "at least"
expect 6 train "$model" --steps 1 --save "$work/no/folder.st" -q
err "no/folder.st"
expect 6 train "$model" --resume "$work/none.st"
head -c 200 "$work/part.st" >"$work/cut.st"
expect 3 train "$model" --resume "$work/cut.st"
err "cut.st"
sed 's/unit = 24/unit = 25/' "$model" >"$work/other.ini"
expect 3 train "$work/other.ini" --resume "$work/part.st"
err "in the file and"
sed 's/rate = 0.01/rate = 1e38/; s/= adam/= sgd/; s/: adam/: sgd/' "$model" >"$work/wild.ini"
expect 2 train "$work/wild.ini" -q --save "$work/wild.st"
err "not finite"
[ ! -e "$work/wild.st" ] || complain "weights that are not finite were saved"

# The smallest budget is named, and it is enough.
least=$("$REMAT" train "$model" -j 1 --budget 1KiB 2>&1 | sed 's/.*at least \([0-9,]*\) bytes.*/\1/; s/,//g')
expect 0 train "$model" -j 1 --budget "$least" --save "$work/tight.st" -q
cmp "$work/whole.st" "$work/tight.st" || complain "the smallest budget gives other bits"
finish
