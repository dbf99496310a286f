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

sed "s|spirals.csv|$work/&|" "$model" >"$work/absolute.ini"
expect_stdin 0 "$work/absolute.ini" predict - -w "$work/w.st"
cmp "$work/out" "$work/values" || complain "a model from standard input predicts something else"

expect 0 predict "$model" -w "$work/w.st" --classes --samples 40
[ "$(wc -l <"$work/out")" = 40 ] || complain "--samples 40 prints $(wc -l <"$work/out") lines"
head -n 40 "$work/values" | awk -F, '{print ($2 > $1) ? 1 : 0}' >"$work/classes"
cmp "$work/out" "$work/classes" || complain "--classes is not the larger of the two"

# A batch that does not divide the samples, and one that is larger than all of them, leave none out.
for batch in 7 1000; do
  expect 0 predict "$model" -w "$work/w.st" --batch $batch
  cmp "$work/out" "$work/values" || complain "a batch of $batch changes the values"
done
head -n 41 "$work/values" >"$work/first"
expect 0 predict "$model" -w "$work/w.st" --samples 41 --batch 20
cmp "$work/out" "$work/first" || complain "--samples 41 prints $(wc -l <"$work/out") lines"
expect 0 predict "$model" -w "$work/w.st" --samples 4000
cmp "$work/out" "$work/values" || complain "more samples than there are print $(wc -l <"$work/out") lines"

expect 2 predict "$model" -w "$work/w.st" --batch 0
err "--batch takes a number from 1 on"
expect 2 predict "$model" -w "$work/w.st" --samples 0
sed 's/spirals.csv/none.csv/' "$model" >"$work/no_data.ini"
expect 6 predict "$work/no_data.ini" -w "$work/w.st"
err "none.csv"
expect 2 predict "$model"
err "--weights FILE is missing"
expect 6 predict "$model" -w "$work/none.st"
finish
