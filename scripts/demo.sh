#!/bin/sh
# The main job on something small that ships with the project: a GPT that learns to write C from these sources, in a memory
# in which keeping all activations does not fit.
set -eu
remat=$1
model=examples/models/gpt.ini
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

show() {
  printf '\n$ remat %s\n' "$*"
}

show "fit $model --budget 32MiB"
"$remat" fit $model --budget 32MiB
show "train $model --strategy none --budget 32MiB     # everything kept: does not fit"
"$remat" train $model --strategy none --budget 32MiB || true
show "train $model --budget 32MiB --memory-limit hard --steps 300 --save gpt.safetensors"
"$remat" train $model --budget 32MiB --memory-limit hard --steps 300 --save "$folder/gpt.safetensors"
show "generate $model --weights gpt.safetensors --prompt 'static remat_status ' --count 300"
"$remat" generate $model --weights "$folder/gpt.safetensors" --prompt 'static remat_status ' --count 300
