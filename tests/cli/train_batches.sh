#!/bin/sh
# `remat train --batch largest` and `--batch auto` say what the batch is limited by: the budget, or the samples.
. tests/cli/support/expect.sh
cat >"$work/net.ini" <<'INI'
[Model]
batch_size = 8
[Dataset : random]
samples = 40
validation_split = 0.25
[in : input]
input_shape = 64
[fc1 : fully_connected]
unit = 64
[fc2 : fully_connected]
unit = 4
[loss : mse]
INI

# batch BATCH SAYS OPTION...
batch() {
  size=$1 says=$2
  shift 2
  expect 0 train "$work/net.ini" -j 1 --steps 1 --json "$@"
  out "\"batch\": $size,"
  grep -qE "^batch $size: $says\$" "$work/err" || complain "$*: $(head -n 1 "$work/err")"
}

batch 10 "the budget allows [0-9]{4,}, the validation data has 10" --batch largest --budget 64MiB
batch 40 "the budget allows [0-9]{4,}, the training data has 40" --batch largest --budget 64MiB --set dataset.validation_split=0
batch 20 "the budget allows [0-9]{4,}, the training data has 40" --batch largest --budget 64MiB --set dataset.validation_split=0 \
  --set model.accumulate=2
batch 10 "the budget allows [0-9]{4,}, the validation data has 10" --batch auto --budget 64MiB
expect 0 train "$work/net.ini" -j 1 --steps 1 --batch largest --budget 64MiB -q
silent err

# A budget that holds just so many samples: one sample more does not fit.
expect 0 fit "$work/net.ini" -j 1 --batch 7 --json
least=$(sed -n 's/.*"min_budget_bytes": \([0-9]*\).*/\1/p' "$work/out" | head -n 1)
batch 7 "the budget allows no more" --batch largest --budget "$least"
expect 4 train "$work/net.ini" -j 1 --steps 1 --batch 8 --budget "$least"

expect 4 train "$work/net.ini" -j 1 --steps 1 --batch largest --budget 1KiB
err "the budget of 1 KiB is too small"
expect 2 train "$work/net.ini" -j 1 --steps 1 --batch largest
err "the largest batch for which budget?"
finish
