#!/bin/sh
# `remat predict`: a line for every sample.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini
expect 0 train "$model" --steps 200 --save "$work/w.st" -q

expect 0 predict "$model" --weights "$work/w.st"
[ "$(wc -l <"$work/out")" = 400 ] || complain "$(wc -l <"$work/out") lines instead of 400"
! grep -qvE '^-?[0-9.e+-]+,-?[0-9.e+-]+$' "$work/out" || complain "a line is not two numbers"
cp "$work/out" "$work/values"
# The same values whatever the size of the batch.
expect 0 predict "$model" -w "$work/w.st" --batch 5 -j 1
cmp "$work/out" "$work/values" || complain "the batch size changes the values"

expect 0 predict "$model" -w "$work/w.st" --classes --samples 40
[ "$(wc -l <"$work/out")" = 40 ] || complain "--samples 40 prints $(wc -l <"$work/out") lines"
head -n 40 "$work/values" | awk -F, '{print ($2 > $1) ? 1 : 0}' >"$work/classes"
cmp "$work/out" "$work/classes" || complain "--classes is not the larger of the two"

expect 2 predict "$model"
err "--weights FILE is missing"
expect 6 predict "$model" -w "$work/none.st"
finish
