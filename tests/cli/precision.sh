#!/bin/sh
# precision = bf16: every command that takes a model takes it, plans count it, and a training goes on with the same bits.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
sed 's/^batch_size.*/batch_size = 20\nprecision = bf16/; s/^rate = 0.1/rate = 0.1\nprecision = fp32/' "$work/spirals.ini" \
  >"$work/bf16.ini"
model=$work/bf16.ini
expect 0 train "$model" --steps 40 --save "$work/whole.st" -q
expect 0 train "$model" --steps 20 --save "$work/half.st" -q --strategy full --threads 2
expect 0 train "$model" --steps 40 --resume "$work/half.st" --save "$work/resumed.st" -q
cmp "$work/whole.st" "$work/resumed.st" || complain "a resumed training has other bits"
expect 0 eval "$model" --weights "$work/whole.st" --batch 10
expect 0 predict "$model" --weights "$work/whole.st" --batch 10
for command in fit profile bench summary plan sweep report; do
  case $command in
    report) set -- -o "$work/page.html" ;;
    profile) set -- -o "$work/profile.json" --repeats 1 ;;
    bench) set -- --steps 1 ;;
    *) set -- ;;
  esac
  expect 0 $command "$model" "$@"
done
# The memory of the activations: half of it, where they are most of it.
arena() { expect 0 plan examples/models/gpt_bench.ini --set "model.precision=$1" --json; sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$work/out"; }
full=$(arena fp32)
half=$(arena bf16)
[ "$half" -lt $((full * 2 / 3)) ] || complain "bf16 takes $half bytes and fp32 $full"
expect 2 train "$model" --set model.precision=fp16 -q
err "fp16"
expect 2 train "$model" --set fc1.precision=bf16 -q
err "bf16 is said once, in [Model]"
finish
