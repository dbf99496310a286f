#!/bin/sh
# `remat profile`: measured costs of a model's layers, which training can plan with.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
byte_model
model=$work/bytes.ini

expect 0 profile "$model" --repeats 3 -o "$work/profile.json"
silent out
grep -q '"cost_unit": "ns"' "$work/profile.json" || complain "the costs have no unit"
grep -q '"name": "attention.core"' "$work/profile.json" || complain "the attention is not there"
# It is a profile like any other.
expect 0 plan "$work/profile.json" --strategy full
expect 0 profile "$model" --repeats 1 --kernels reference
out '"format": "remat-profile"'

# Planning with it changes what is recomputed, never the bits.
expect 0 train "$model" --steps 20 --save "$work/a.st" -q
expect 0 train "$model" --steps 20 --save "$work/b.st" -q --profile "$work/profile.json" --strategy every-nth:2
cmp "$work/a.st" "$work/b.st" || complain "a profile changes the bits"
# Times of another batch are scaled, and that is said once.
expect 0 profile "$model" --batch 2 --repeats 3 -o "$work/two.json"
expect 0 fit "$model" --batch 6 --profile "$work/two.json"
err "the profile was measured with batch 2; its times are scaled to batch 6"
[ "$(grep -c 'scaled to' "$work/err")" = 1 ] || complain "the scaling is said several times"
expect 0 train "$model" --steps 20 --save "$work/b.st" -q --profile "$work/two.json" --strategy every-nth:2
cmp "$work/a.st" "$work/b.st" || complain "a scaled profile changes the bits"
sed '/"name": "attention.core"/s/"output_bytes": [0-9]*/"output_bytes": 64/' "$work/two.json" >"$work/other.json"
expect 3 train "$model" --profile "$work/other.json"
err "it was measured with another model"
spiral_model
expect 3 train "$work/spirals.ini" --profile "$work/profile.json"
err "none of the model's layers"
expect 6 train "$model" --profile "$work/none.json"
# Measuring keeps everything, even where the model's own budget would not allow that; so does timing.
sed 's/^batch_size.*/&\nbudget = 100KiB/' "$model" >"$work/tight.ini"
expect 4 train "$work/tight.ini" --strategy none --steps 1
expect 0 profile "$work/tight.ini" --repeats 1 -o "$work/tight.json"
expect 0 bench "$work/tight.ini" --steps 1 --json
json_object "$work/out"
out '"recompute_seconds": 0'
expect 4 bench "$work/tight.ini" --steps 1 --budget 100KiB
for command in profile bench; do
  expect 2 $command "$model" --batch 0
  err "--batch takes a number from 1 on"
done
sed "s|abc.txt|$work/&|" "$model" >"$work/absolute.ini"
expect_stdin 0 "$work/absolute.ini" profile - --repeats 1
out '"format": "remat-profile"'
expect_stdin 0 "$work/absolute.ini" bench - --steps 1 --json
json_object "$work/out"
expect 2 profile
expect 2 profile "$model" --repeats 0
finish
