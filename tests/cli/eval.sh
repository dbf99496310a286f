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
# Nobody is ill, and nobody is found to be: what cannot be computed is left out.
printf 'x,ill\n-9,0\n-8,0\n' >"$work/well.csv"
expect 0 eval "$work/answers.ini" -w "$work/answers.st" --data "$work/well.csv"
out "ill                              0   100.00 %          -          -          -"
expect 0 eval "$work/answers.ini" -w "$work/answers.st" --data "$work/well.csv" --json
out '"precision": null, "recall": null'

# Two targets, and classes with names that a table has to quote. A class of which there is no sample has no figures.
sed 's/^x,ill/x,ill,old/; s/^[^x].*/&,1/' "$work/answers.csv" >"$work/two.csv"
sed 's/^unit = 1/unit = 2/; s/^inputs = .*/inputs = two.csv\nlabels = 2/' "$work/answers.ini" >"$work/two.ini"
expect 0 train "$work/two.ini" -q --steps 2 --save "$work/two.st"
expect 0 eval "$work/two.ini" -w "$work/two.st" --data "$work/two.csv" --json
out '{"name": "ill", '
out ', {"name": "old", '
awk 'BEGIN {
  print "size,kind"
  split("\"a,b\"|\"say \"\"hi\"\"\"|\" first\"|plain", names, "|")
  for (i = 0; i < 40; i++) print i % 4 * 10 + i % 3 "," names[i % 4 + 1]
}' >"$work/odd.csv"
printf '[Model]\nbatch_size = 8\nepochs = 60\nseed = 1\n[Optimizer : adam]\nlearning_rate = 0.05\n[Dataset : csv]\ninputs = odd.csv\n' >"$work/odd.ini"
printf 'normalize = standard\n[in : input]\ninput_shape = 1\n[h : fully_connected]\nunit = 16\nactivation = tanh\n' >>"$work/odd.ini"
printf '[fc : fully_connected]\nunit = 4\n[loss : cross_entropy]\n' >>"$work/odd.ini"
expect 0 train "$work/odd.ini" -q -j 1 --save "$work/odd.st"
expect 0 predict "$work/odd.ini" -w "$work/odd.st" --output - --samples 4
cat >"$work/quoted" <<'END'
row,prediction," first","a,b",plain,"say ""hi"""
1,"a,b"
2,"say ""hi"""
3," first"
4,plain
END
sed '2,$s/\(,[0-9.e+-]*\)\{4\}$//' "$work/out" | cmp - "$work/quoted" || complain "names are not quoted: $(cat "$work/out")"
grep -v plain "$work/odd.csv" >"$work/three.csv"
expect 0 eval "$work/odd.ini" -w "$work/odd.st" --data "$work/three.csv"
grep -qE '^plain +0 +- +-$' "$work/out" || complain "a class without samples: $(cat "$work/out")"

# Numbers: errors, and a position for each row of a sample. Of labels that are all the same, nothing is explained.
{
  echo x0,x1,x2,x3,x4,x5,y0,y1,y2,y3,y4,y5
  for i in 1 2 3 4 5 6; do echo "$i,2,3,4,5,$i,0,1,$i,$i,4,5"; done
} >"$work/rows.csv"
printf '[Model]\nbatch_size = 2\n[Dataset : csv]\ninputs = rows.csv\nlabels = 6\n[in : input]\ninput_shape = 1:3:2\n' >"$work/rows.ini"
printf '[fc : fully_connected]\nunit = 2\n[loss : mse]\n' >>"$work/rows.ini"
expect 0 train "$work/rows.ini" -q -j 1 --steps 1 --save "$work/rows.st"
expect 0 predict "$work/rows.ini" -w "$work/rows.st" --output -
[ "$(cut -d , -f 1-2 "$work/out" | head -n 5 | tr '\n' ' ')" = "row,position 1,1 1,2 1,3 2,1 " ] || complain "rows: $(cat "$work/out")"
head -n 1 "$work/out" | grep -qx 'row,position,value0,value1' || complain "names of one position stand for all: $(head -n 1 "$work/out")"
expect 0 eval "$work/rows.ini" -w "$work/rows.st" --data "$work/rows.csv"
out "mean absolute error"
out "R2"
sed '2,$s/\(.*\),.*,.*,.*,.*,.*,.*/\1,1,1,1,1,1,1/' "$work/rows.csv" >"$work/flat.csv"
expect 0 eval "$work/rows.ini" -w "$work/rows.st" --data "$work/flat.csv"
out "mean absolute error"
if grep -q R2 "$work/out"; then complain "nothing varies: $(cat "$work/out")"; fi
expect 0 eval "$work/rows.ini" -w "$work/rows.st" --data "$work/flat.csv" --json
out '"r2": null'
finish
