#!/bin/sh
# `remat eval`: the loss of saved weights.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini
expect 0 train "$model" --save "$work/w.st" --log "$work/log.jsonl" -q

# The same loss as the training saw at its end.
expect 0 eval "$model" --weights "$work/w.st"
out "over 80 samples"
out "accuracy"
expect 0 eval "$model" -w "$work/w.st" --json
json_lines "$work/out"
loss=$(sed 's/.*"loss": \([^,]*\),.*/\1/' "$work/out")
seen=$(grep validation "$work/log.jsonl" | tail -n 2 | sed -n 's/.*loss": \([0-9.e+-]*\).*/\1/p' | head -n 1)
case $seen in "$(echo "$loss" | cut -c 1-7)"*) ;; *) complain "eval says $loss, the training said $seen" ;; esac
expect 0 eval "$model" -w "$work/w.st" --kernels reference
out "over 80 samples"

sed "s|spirals.csv|$work/&|" "$model" >"$work/absolute.ini"
expect_stdin 0 "$work/absolute.ini" eval - -w "$work/w.st" --json
[ "$(sed 's/.*"loss": \([^,]*\),.*/\1/' "$work/out")" = "$loss" ] || complain "a model from standard input has another loss"

# Whole batches or not, every sample counts once.
for batch in 1 7 50 1000; do
  expect 0 eval "$model" -w "$work/w.st" --batch $batch
  out "over 80 samples"
done
expect 0 eval "$model" -w "$work/w.st" --data "$work/spirals.csv" --output "$work/eval.json" --json
err "wrote $work/eval.json"
silent out
json_lines "$work/eval.json"
grep -q '"rows": 400, "samples": 400, "classes": \[{"name": "0", "rows": 200, ' "$work/eval.json" || complain "eval --data: $(cat "$work/eval.json")"
expect 0 eval "$model" -w "$work/w.st"
out "class"
out "precision"
out "labels (rows) and predictions (columns"
expect 6 eval "$model" -w "$work/w.st" --data "$work/none.csv"
expect 6 eval "$model" -w "$work/w.st" --output "$work/none/x"

# A loss that is no number is null in JSON.
sed 's/^learning_rate.*/learning_rate = 1e38/' "$model" >"$work/wild.ini"
expect 0 train "$work/wild.ini" --steps 1 --save "$work/wild.st" --weights-only -q
expect 0 eval "$model" -w "$work/wild.st" --json
json_lines "$work/out"
out '"loss": null'

expect 2 eval "$model" -w "$work/w.st" --batch 0
expect 2 eval "$model"
err "--weights FILE is missing"
expect 6 eval "$model" -w "$work/none.st"
sed '/validation_split/d' "$model" >"$work/no_validation.ini"
expect 2 eval "$work/no_validation.ini" -w "$work/w.st"
err "validation"

# A binary cross entropy: accuracy, precision, recall and F1 of each target, and probabilities in the table of predictions.
file answers.csv <<'END'
x,ill
-3,0
-2,0
-1,0
-0.5,1
0.5,0
1,1
2,1
3,1
END
file answers.ini <<'END'
[Model]
batch_size = 8
epochs = 200
[Optimizer : adam]
learning_rate = 0.1
[Dataset : csv]
inputs = answers.csv
[x : input]
input_shape = 1
[out : fully_connected]
unit = 1
[loss : binary_cross_entropy]
END
expect 0 train "$work/answers.ini" -q --save "$work/answers.st"
expect 0 eval "$work/answers.ini" -w "$work/answers.st" --data "$work/answers.csv"
out "accuracy 75.00 %"
out "target                         yes   accuracy  precision     recall         F1"
out "ill                              4    75.00 %    75.00 %    75.00 %    75.00 %"
expect 0 eval "$work/answers.ini" -w "$work/answers.st" --data "$work/answers.csv" --json
out '"targets": [{"name": "ill", "positives": 4, "predicted": 4, "correct": 3, "accuracy": 0.75,'
expect 0 predict "$work/answers.ini" -w "$work/answers.st" --data "$work/answers.csv" --output "$work/answers_out.csv"
err "wrote $work/answers_out.csv"
expect 0 predict "$work/answers.ini" -w "$work/answers.st" --data "$work/answers.csv" --output -
! grep -q wrote "$work/err" || complain "standard output is called a file"
[ "$(sed -n '1p;2s/0\.[0-9]*/P/p;9s/0\.[0-9]*/P/p' "$work/answers_out.csv" | tr '\n' ' ')" = "row,prediction,ill 1,0,P 8,1,P " ] ||
  complain "answers are predicted as $(head -n 3 "$work/answers_out.csv")"
finish
