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
# Without master copies: the weights in the file and in the plan take half the bytes, and the bits are the same again.
halves() { expect 0 train "$model" --set model.master=false --set optimizer.state=int8 "$@" -q; }
halves --steps 40 --save "$work/whole.st"
halves --steps 20 --save "$work/half.st" --strategy full --threads 2
halves --steps 40 --resume "$work/half.st" --save "$work/resumed.st"
cmp "$work/whole.st" "$work/resumed.st" || complain "a resumed training without master copies has other bits"
expect 3 train "$model" --steps 40 --resume "$work/half.st" --set optimizer.state=int8 -q
err "master = false, the model says true"
grep -q '"dtype":"BF16"' "$work/whole.st" || complain "the weights are not in bf16"
expect 0 eval "$model" --weights "$work/whole.st" --batch 10
expect 0 predict "$model" --weights "$work/whole.st" --batch 10
expect 0 convert "$model" --weights "$work/whole.st" --to remat --output "$work/converted.st"
expect 0 eval "$model" --weights "$work/converted.st" --batch 10
expect 0 train "$model" --weights "$work/converted.st" --set model.master=false --steps 1 -q
expect 0 summary examples/models/gpt_bench.ini --set model.precision=bf16 --set model.master=false
out "14,186,496 parameters (27.1 MiB)"
expect 0 fit examples/models/gpt_bench.ini --set model.precision=bf16 --set model.master=false --set optimizer.state=int8 --budget 95MB
expect 3 train "$model" --set model.precision=fp32 --set model.master=false -q
err "it needs precision=bf16"
expect 2 train "$model" --set model.precision=fp16 -q
err "fp16"
expect 2 train "$model" --set fc1.precision=bf16 -q
err "bf16 is said once, in [Model]"
expect 8 train examples/models/convnet.ini --set model.precision=bf16 --set optimizer.learning_rate=1e30 --steps 30 -q
err "step 2 diverged: the loss is not finite; the first layer whose output is not finite is conv2"
finish
