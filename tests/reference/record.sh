#!/bin/sh
# Records the losses of PyTorch that test_reference_losses compares with, all of them or those of the names given:
#   REMAT=build/remat sh tests/reference/record.sh gpt_bench
# Double precision, so that the numbers are closer to the truth than what is tested. The residual net gets fewer steps:
# with its rate and momentum, rounding to single precision alone moves PyTorch's own losses by 5e-4 within 20.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- mlp_bench convnet resnet many_layers image_layers gpt_bench
for name; do
  model=examples/models/$name.ini steps=20
  [ -f "$model" ] || model=tests/reference/$name.ini
  [ "$name" != resnet ] || steps=12
  echo "$name"
  "${PYTHON:-/usr/bin/python3}" tests/reference/torch_losses.py "$model" --steps $steps --double \
    --record "tests/reference/losses_$name.json" >/dev/null
done
