#!/bin/sh
# `remat layers`: what a model can be made of.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh

expect 0 layers
out "fully_connected       a matrix and a bias on the last dimension"
if grep -q projection_cross_entropy "$work/out"; then complain "a type is listed that no model can name"; fi
types=$(sed 's/ .*//' "$work/out")
[ "$(echo "$types" | wc -l)" -ge 20 ] || complain "only these types: $types"

# Every type explains itself, and a model can name it.
for type in $types; do
  expect 0 layers "$type"
  head -n 1 "$work/out" | grep -q "^$type: ." || complain "$type does not say what it is"
  sed -n 2p "$work/out" | grep -q "^reads " || complain "$type does not say what it reads"
  printf '[a : %s]\n' "$type" | "$REMAT" summary - >"$work/out" 2>&1 || true
  if grep -q "no layer type" "$work/out"; then complain "a model cannot name $type"; fi
done

expect 0 layers conv2d
out "reads 1 layer"
out "filters (required)"
out "stride = 1"
out "whether a bias is added"
expect 0 layers batch_normalization
out "of a vector, 1:1:w: every feature"
expect 0 layers pooling2d
out "padding does not count"
expect 0 layers addition
out "reads 2 to 16 layers"
expect 0 layers cross_entropy
out "reads 1 layer, and as labels a whole number"
expect 0 layers Multi-Head-Attention
out "multi_head_attention: "
expect 0 layers activation
out "one of "
out "relu"

# As JSON all of it, or one.
expect 0 layers --json
json_object "$work/out"
for type in $types; do out "\"type\": \"$type\""; done
expect 0 layers conv2d --json
json_object "$work/out"
out '{"key": "kernel_size", "kind": "pair", "min": 1, "max": '
out '"choices": ["default", '
[ "$(grep -c '"type"' "$work/out")" = 1 ] || complain "more than one type"

expect 2 layers conv3d
err "did you mean 'conv2d'?"
expect 2 layers something_else_entirely
err "there are input, fully_connected"
expect 2 layers projection_cross_entropy
err "write those two"
expect 2 layers conv2d mse
err "second"
finish
