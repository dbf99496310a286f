#!/bin/sh
# The main job on something small that ships with the project: a GPT that learns to say the time of day in words, in
# memory in which keeping all activations does not fit; and the proof that it learns the same.
set -eu
remat=$1
model=examples/models/gpt.ini
unseen=examples/data/clock_unseen.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

show() {
  printf '\n$ remat %s\n' "$*"
}

show "train $model --strategy none --budget 16MiB     # keep everything: does not fit"
"$remat" train $model --strategy none --budget 16MiB || true

# These files stay: the program names them at the end, to go on with.
show "train $model --budget 16MiB --memory-limit hard --steps 2000 --save demo.safetensors --log demo.jsonl"
"$remat" train $model --budget 16MiB --memory-limit hard --steps 2000 --save demo.safetensors --log demo.jsonl

show "train $model --strategy none --steps 30 --save kept.safetensors      # without a limit"
"$remat" train $model --strategy none --steps 30 --quiet --save "$folder/kept.safetensors"
show "train $model --budget 16MiB --steps 30 --save small.safetensors"
"$remat" train $model --budget 16MiB --steps 30 --quiet --save "$folder/small.safetensors"
if cmp -s "$folder/kept.safetensors" "$folder/small.safetensors"; then
  printf 'kept.safetensors and small.safetensors are the same, to the bit\n'
else
  printf 'kept.safetensors and small.safetensors DIFFER\n'
  exit 1
fi

show "generate $model --weights demo.safetensors --temperature 0 --prompt TIME     # ten times that it never read"
right=0
for time in 17:45 $(head -n 9 $unseen | cut -c 1-5); do
  answer=$("$remat" generate $model --weights demo.safetensors --prompt "$time is" --temperature 0 --count 26)
  printf '%s\n' "$answer" | sed 's/ *$//'
  if grep -qx "$answer" $unseen; then right=$((right + 1)); fi
done
echo "$right of 10 are right"

show "report $model --budget 16MiB demo.jsonl -o demo.html"
"$remat" report $model --budget 16MiB demo.jsonl -o demo.html
printf '\nOpen demo.html: what was kept, what was recomputed, what it cost.\n'
