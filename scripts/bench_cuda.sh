#!/bin/sh
# Step times of GPT-2 on a GPU, in bf16 with fp32 master weights, AdamW and clipping, on random tokens: bench_cuda.sh [REMAT].
# STEPS=60 for more steps. The memory is what the driver says that the process has, its context included.
set -eu
remat=${1:-build/remat}
steps=${STEPS:-30}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# gpt NAME LAYERS WIDTH HEADS BATCH: the model of the benchmarks in another size.
gpt() {
  sed -e "s/^batch_size = .*/batch_size = $5\nprecision = bf16\nclip_norm = 1/" -e "s/^samples = .*/samples = $((64 * $5))/" \
    -e "s/1:1:256/1:1:1024/" -e "s/8192/50304/" -e "s/384/$3/" -e "s/^count = .*/count = $2/" -e "s/^num_heads = .*/num_heads = $4/" \
    examples/models/gpt_bench.ini >"$folder/$1.ini"
}

# used: MiB of the GPU in use.
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }

# measure NAME [OPTION...]: trains and prints a line of the table.
measure() {
  name=$1
  shift
  before=$(used)
  "$remat" train "$folder/$name.ini" --device cuda --steps "$steps" "$@" >"$folder/log" 2>&1 &
  pid=$!
  most=0
  while kill -0 $pid 2>/dev/null; do
    now=$(used)
    [ "$now" -le "$most" ] || most=$now
    sleep 0.2
  done
  wait $pid || { cat "$folder/log"; exit 1; }
  time=$(sed -n 's/^step time  *\(.*\)/\1/p' "$folder/log")
  echo "$name $*: $((most - before)) MiB; step time (predicted, measured) $time" | sed "s|$folder/||g"
}

gpt gpt2-355M 24 1024 16 16
gpt gpt2-124M 12 768 12 64
gpt gpt2-1558M 48 1600 25 8
for name in gpt2-355M gpt2-124M gpt2-1558M; do
  "$remat" profile "$folder/$name.ini" --device cuda -o "$folder/$name.csv" >/dev/null
  measure $name --strategy none --profile "$folder/$name.csv"
done
for budget in 11.4GiB 8.4GiB 6.4GiB 5.7GiB; do
  measure gpt2-355M --budget $budget --profile "$folder/gpt2-355M.csv"
done
measure gpt2-124M --budget 11.4GiB --profile "$folder/gpt2-124M.csv"
measure gpt2-1558M --budget 31GiB --profile "$folder/gpt2-1558M.csv"
# Without clipping, gradients need no memory of their own. Weights and optimizer take 17.4 GiB.
sed -i '/^clip_norm/d' "$folder/gpt2-1558M.ini"
measure gpt2-1558M --budget 25.7GiB --profile "$folder/gpt2-1558M.csv"
