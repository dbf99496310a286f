#!/bin/sh
# What is seldom typed: files of other programs, options that do not go with the file, words without end, empty names.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini

# Weights and arrays are told apart from texts by their first bytes, and the message says where they belong.
printf 'PK\003\004............archive/data.pkl' | file theirs.pt
printf 'PK\003\004............points.npy' | file points.npz
printf '\002\000\000\000\000\000\000\000{}' | file empty.st
printf 'PK\003\004............letter.doc' | file other.zip
for command in plan arena; do
  for weights in theirs.pt empty.st; do
    expect 3 $command "$work/$weights"
    err "$work/$weights: this is a weights file"
  done
done
expect 3 plan "$work/points.npz"
err "these are NumPy arrays"
expect 3 plan "$work/other.zip"
err "$work/other.zip:1: recompute_flops: the column is missing"

# A graph is planned as it is: what changes a model does not go with it.
expect 0 plan "$model" --strategy none --graph-out "$work/graph.json"
for words in "--profile x.json" "--batch auto" "--batch 3" "--ranks 2"; do
  # shellcheck disable=SC2086
  expect 2 fit "$work/graph.json" $words
  err "FILE is a graph; --profile, --ranks and --batch are only for models"
done
for words in "--profile x.json" "--batch 3" "--device cpu"; do
  # shellcheck disable=SC2086
  expect 2 sweep "$work/graph.json" $words
  err "FILE is a graph; --profile, --device and --batch are only for models"
done
expect 2 plan "$model" --dim N=1
err "--dim is only for ONNX files"
expect 2 fit "$model" --ranks 3 --pipeline 2
err "where N is a multiple of its stages"
expect 2 train "$model" --pipeline 0
err "--pipeline takes a number of stages from 1 on"
expect 2 train "$model" --frozen int9
err "not 'int9'"

# Behind -- nothing is an option. Long words are like no other, and long names are cut.
expect 0 plan -- "$model"
out "the blocks of the model decide"
long=$(printf '%0300d' 0)
expect 2 "$long"
err "there is no command '$long'; 'remat --help' lists them"
expect 2 plan "$model" "--$long"
err "'remat plan --help' lists them"
! grep -q "did you mean" "$work/err" || complain "a word of 300 letters is like an option"

# An empty name is no file.
expect 6 train "$model" --steps 1 -q --save ''
err "cannot be written: this is not a file name"
expect 6 train "$model" --steps 1 -q --lora rank=2 --save ''
err "cannot be written: this is not a file name"
expect 0 train "$model" --steps 1 -q --save "$work/weights.st"
expect 6 convert "$model" --weights "$work/weights.st" --output ''
err "cannot be written: this is not a file name"

# A process that may use some cores only is told so.
if command -v taskset >/dev/null 2>&1 && [ "$(nproc)" -gt 1 ]; then
  first=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
  taskset -c "$first" "$REMAT" doctor >"$work/out" 2>"$work/err" || complain "doctor on one core: exit $?"
  grep -q '^cores  *1 usable of ' "$work/out" || complain "doctor says: $(grep cores "$work/out")"
else
  part_skipped "there is one core only, or no taskset"
fi

# nohup ignores SIGHUP: such a training goes on, and SIGTERM still saves it.
(trap '' HUP && exec "$REMAT" train "$model" --steps 100000000 -q -j 1 --save "$work/hung.st" --log "$work/hung.jsonl") 2>"$work/err" &
process=$!
steps() { wc -l 2>"$work/none" <"$work/hung.jsonl" || echo 0; }
until [ "$(steps)" -gt 3 ] || ! kill -0 $process 2>"$work/none"; do sleep 0.05; done
kill -HUP $process
before=$(steps)
until [ "$(steps)" -gt $((before + 100)) ] || ! kill -0 $process 2>"$work/none"; do sleep 0.05; done
kill -TERM $process 2>"$work/none" || complain "SIGHUP ended a training that ignores it"
code=0
wait $process || code=$?
[ $code = 143 ] || complain "SIGTERM after SIGHUP: exit $code"
[ -s "$work/hung.st" ] || complain "nothing was saved"
finish
