#!/bin/sh
# Optimizers with small states: the plan counts their bytes, and a training goes on from a file with the same bits.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini
bytes_of() { sed -n 's/.*"optimizer_bytes": \([0-9]*\).*/\1/p' "$work/out"; }
last=
for state in fp32 bf16 int8; do
  sed "s/^\[Optimizer.*/[Optimizer : adamw]\\nstate = $state/" "$model" >"$work/$state.ini"
  expect 0 train "$work/$state.ini" --steps 6 --save "$work/whole.st" -q --json
  bytes=$(bytes_of)
  [ -n "$bytes" ] || complain "no optimizer_bytes"
  [ -z "$last" ] || [ "$bytes" -lt "$last" ] || complain "state = $state takes $bytes bytes, no less than $last"
  last=$bytes
  expect 0 train "$work/$state.ini" --steps 3 --save "$work/half.st" -q
  expect 0 train "$work/$state.ini" --steps 6 --resume "$work/half.st" --save "$work/resumed.st" -q --threads 2
  cmp "$work/whole.st" "$work/resumed.st" || complain "state = $state: a resumed training has other bits"
done
for type in lion adafactor; do
  sed "s/^\[Optimizer.*/[Optimizer : $type]/" "$model" >"$work/$type.ini"
  expect 0 train "$work/$type.ini" --steps 6 --save "$work/$type.st" -q
done
expect 3 train "$work/lion.ini" --resume "$work/adafactor.st" -q
err "the training was done with adafactor, the model says lion"
# Builds before release 0.2 did not say which codes they wrote in 8 bits. Without checksums the changed file passes for theirs.
expect 0 train "$work/int8.ini" --steps 3 --save "$work/codes.st" -q
LC_ALL=C sed 's/"version":"2"/"version":"1"/; s/remat_checksum/other_checksum/; s/remat_tensor/other_tensor/; s/"codes":"2"/"other":"2"/' \
  "$work/codes.st" >"$work/before.st"
expect 3 train "$work/int8.ini" --steps 6 --resume "$work/before.st" -q
err "codes of version 1, of a build before release 0.2, and this release reads version 2; the weights alone can be loaded"
expect 0 train "$work/int8.ini" --steps 1 --weights "$work/before.st" -q
expect 2 train "$work/adafactor.ini" --set optimizer.state=int8 -q
err "it belongs to all optimizers but adafactor"
finish
