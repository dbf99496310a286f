#!/bin/sh
# `remat fit`: whether a model fits, and what would.
. tests/cli/support/expect.sh
model=examples/models/resnet.ini

number() { grep -o "\"$1\": [0-9.e+-]*" "$work/out" | head -1 | sed 's/.*: //'; }

expect 0 fit $model --budget 9MiB
out "fits into 9 MiB"
out "weights"
out "smallest budget"
out "nothing recomputed"
out "clip_norm adds"
out "accumulate adds"
out "determines the smallest budget"
awk '/^weights /,/^scratch /{ gsub(",", ""); for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/) { sum += $i; break } }
     /^total /{ gsub(",", ""); if ($2 != sum) exit 1; found = 1 } END { exit !found }' "$work/out" ||
  complain "the parts do not sum to the total"

# A budget of the model itself counts like one that is given, whether it fits or not.
for budget in 9MiB 1MiB; do
  sed "s/^\[Model\]/&\nbudget = $budget/" $model >"$work/own.ini"
  case $budget in 9MiB) code=0 says="fits into 9 MiB" bytes=9437184 ;; *) code=4 says="does not fit into 1 MiB" bytes=1048576 ;; esac
  expect $code fit "$work/own.ini"
  out "$says"
  expect $code fit "$work/own.ini" --json
  out "\"budget_bytes\": $bytes"
done

# Without a budget: as the model says.
expect 0 fit $model
out "without a budget it takes"
# The total in the first line is that of the table.
expect 0 fit examples/models/resnet.ini
total=$(sed -n 's/^total  *[0-9,]*  *//p' "$work/out")
head -n 1 "$work/out" | grep -q " takes $total and " || complain "another total than $total: $(head -n 1 "$work/out")"
out "fits into"
out "blocks:"

# Without a budget it is compared with the memory that the process may have. The model needs more than this limit when all is
# kept, and less if much is recomputed.
cat >"$work/huge.ini" <<'INI'
[Model]
batch_size = 200000
[Dataset : random]
[in : input]
input_shape = 64
[Repeat hidden]
count = 12
[fc{i} : fully_connected]
unit = 64
activation = tanh
[End]
[loss : mse]
INI
if [ "$REMAT_SANITIZE" != ON ]; then
  code=0
  # shellcheck disable=SC3045 # dash and bash have it
  (ulimit -d 500000 && "$REMAT" fit "$work/huge.ini" -j 1 >"$work/out" 2>"$work/err") || code=$?
  [ $code = 4 ] || complain "a model that does not fit into the machine: exit code $code; $(head -c 300 "$work/err")"
  out "does not fit into 488 MiB, the limit of data of this process (ulimit -d)"
  out "from --budget"
  code=0
  # shellcheck disable=SC3045 # dash and bash have it
  (ulimit -d 500000 && "$REMAT" fit "$work/huge.ini" -j 1 --json >"$work/out" 2>"$work/err") || code=$?
  [ $code = 4 ] || complain "as JSON: exit code $code"
  out '"fits": false'
  out '"machine_bytes": 512000000'
fi

# Both ends are true: the least fits and less does not; at the other nothing is recomputed, just below something is.
expect 0 fit $model --json
least=$(number min_budget_bytes) all=$(number keep_all_bytes)
if has_python; then
  python3 -c 'import json, sys
answer = json.load(open(sys.argv[1]))
plan = answer["plan"]
fixed = sum(plan[k + "_bytes"] for k in ("weight", "optimizer", "gradient", "scratch"))
assert plan["total_bytes"] == fixed + plan["arena_bytes"]
parts = ("activation", "gradient", "weight_gradient", "workspace", "data")
assert plan["peak_bytes"] == sum(plan["peak_" + k + "_bytes"] for k in parts)' "$work/out" || complain "the JSON is wrong"
fi
expect 0 fit $model --budget "$least" --json
out '"fits": true'
expect 4 fit $model --budget $((least - 64)) --json
out '"fits": false'
err "too small"
expect 4 fit $model --budget $((least - 64))
out "does not fit into"
expect 0 fit $model --budget "$all" --json
out '"recomputed_layers": 0,'
expect 0 fit $model --budget $((all - 64)) --json
if grep -q '"recomputed_layers": 0,' "$work/out"; then complain "nothing is recomputed below the budget that keeps all"; fi

# One search tells both ends: the plan within the smallest budget costs what was said, and clipping and accumulation add what was said.
expect 0 fit $model --json
said=$(number min_budget_cost)
layer=$(grep -o '"min_budget_layer": "[^"]*"' "$work/out")
clipped=$((least + $(grep -o '"clip_norm": {[^}]*' "$work/out" | grep -o '[0-9]*$')))
accumulated=$((least + $(grep -o '"accumulation": {[^}]*' "$work/out" | grep -o '[0-9]*$')))
expect 0 fit $model --budget "$least" --json
out "$layer"
[ "$(number cost)" = "$said" ] || complain "the smallest plan costs $(number cost), not $said"
expect 0 fit $model --set model.clip_norm=1 --json
[ "$(number min_budget_bytes)" = "$clipped" ] || complain "with clip_norm it takes $(number min_budget_bytes), not $clipped"
expect 0 fit $model --set model.accumulate=2 --json
[ "$(number min_budget_bytes)" = "$accumulated" ] || complain "with accumulate it takes $(number min_budget_bytes), not $accumulated"

# The smallest budget as it is printed for people is enough, and so is the exact one of the JSON.
expect 0 fit examples/models/gpt.ini -j 1
size=$(awk '/^from /{ getline; print $1 $2 }' "$work/out")
expect 0 fit examples/models/gpt.ini -j 1 --budget "$size"
expect 4 fit examples/models/gpt.ini -j 1 --budget 1MiB --json
expect 0 fit examples/models/gpt.ini -j 1 --budget "$(number min_budget_bytes)"

# The largest batch fits, and one more does not.
expect 0 fit $model --budget 12MiB --batch largest --json
batch=$(number largest_batch)
[ "$batch" -gt 32 ] || complain "only $batch samples fit into 12 MiB"
expect 0 fit $model --budget 12MiB --batch "$batch"
expect 4 fit $model --budget 12MiB --batch $((batch + 1))
# The fastest is smaller: with the largest batch, much is recomputed. It is faster than others.
cat >"$work/deep.ini" <<'INI'
[Dataset : random]
[in : input]
input_shape = 64
[Repeat hidden]
count = 6
[fc{i} : fully_connected]
unit = 64
[act{i} : activation]
activation = gelu_erf
[End]
[out : fully_connected]
unit = 1
[loss : mse]
INI
sample_cost() { # BATCH: nanoseconds of a sample, as predicted
  expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch "$1" --json
  echo "$(($(number cost) / $1))"
}
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch largest --json
batch=$(number largest_batch)
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch auto --json
fastest=$(number fastest_batch)
[ "$(number largest_batch)" = "$batch" ] || complain "--batch auto finds another largest batch"
[ "$fastest" -lt "$batch" ] || complain "the largest batch, $batch, is the fastest: this test shows nothing"
cost=$(sample_cost "$fastest")
for other in 1 $((fastest / 2)) $((fastest - 1)) $((fastest + 1)) $(((fastest + batch) / 2)) "$batch"; do
  [ "$cost" -le "$(sample_cost "$other")" ] || complain "batch $other is faster than $fastest"
done
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch auto
out "$fastest is the fastest batch by the plan's prediction; $batch, the largest that fits, takes"
# With measured times it is the fastest by these. Where computing forward takes no time, recomputing is free, and the largest
# batch is the fastest.
expect 0 profile "$work/deep.ini" -j 1 --batch 8 --repeats 1 -o "$work/measured.json"
sed 's/"forward_cost": [0-9]*/"forward_cost": 0/' "$work/measured.json" >"$work/free.json"
sed 's/"forward_cost": [0-9]*/"forward_cost": 1000000/' "$work/measured.json" >"$work/slow.json"
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch auto --profile "$work/free.json" --json
[ "$(number fastest_batch)" = "$batch" ] || complain "recomputing is free, but batch $(number fastest_batch) is chosen"
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch auto --profile "$work/free.json"
out "$batch is the fastest batch by the plan's prediction, and the largest that fits"
expect 0 fit "$work/deep.ini" -j 1 --budget 1600KB --batch auto --profile "$work/slow.json" --json
[ "$(number fastest_batch)" -lt "$batch" ] || complain "recomputing is expensive, but the largest batch is chosen"
expect 0 train "$work/deep.ini" -j 1 --budget 1600KB --batch auto --profile "$work/slow.json" --steps 1
err "the profile was measured with batch 8; its times are scaled to batch"
[ "$(grep -c 'scaled to' "$work/err")" = 1 ] || complain "--batch auto says more than once that times are scaled"
expect 2 fit $model --batch largest
expect 2 fit $model --batch auto
err "the largest batch for which budget?"
expect 4 fit $model --budget 1MiB --batch auto
expect 2 fit $model --batch 0

# What the settings add is what they take where they are in use.
cat >"$work/small.ini" <<'INI'
[Model]
batch_size = 8
[Optimizer]
Type = adam
[Dataset]
Type = random
[in]
Type = input
input_shape = 64
[fc1]
Type = fully_connected
unit = 64
activation = gelu
[fc2]
Type = fully_connected
unit = 4
[loss]
Type = mse
INI
expect 0 fit "$work/small.ini" --json
plain=$(number keep_all_bytes)
clipping=$(grep -o '"clip_norm": {"used": false, "adds_bytes": [0-9]*' "$work/out" | sed 's/.*: //')
accumulating=$(grep -o '"accumulation": {"used": false, "adds_bytes": [0-9]*' "$work/out" | sed 's/.*: //')
[ "$accumulating" -gt 0 ] || complain "accumulation adds nothing"
for setting in "clip_norm = 1 $clipping" "accumulate = 4 $accumulating"; do
  more=${setting##* }
  sed "s/^batch_size.*/&\\n${setting% *}/" "$work/small.ini" >"$work/more.ini"
  expect 0 fit "$work/more.ini" --json
  out '"used": true'
  [ "$(number keep_all_bytes)" = $((plain + more)) ] || complain "${setting% *} does not add $more bytes"
done

expect_stdin 0 "$work/small.ini" fit - --budget 8MiB
expect 2 fit
expect 3 fit examples/transformer.json
expect 6 fit "$work/missing.ini"
expect 2 fit "$work/small.ini" --strategy nonsense
expect 2 fit examples/unet_graph.json --ranks 2
err "FILE is a graph; --profile, --ranks and --batch are only for models"

# A strategy that is asked for may not fit where the best plan would: the smallest is shown. A batch in words. The device by name.
expect 4 fit "$work/small.ini" -j 1 --strategy none --budget 1KiB
err "with this strategy the model takes"
out "does not fit into 1 KiB; this is the smallest plan"
expect 0 fit "$work/small.ini" -j 1 --budget 2MiB --batch largest
out "is the largest batch that fits"
expect 0 fit "$work/small.ini" -j 1 --device cpu
out "fits into"
# Of a machine that no budget is small enough for, none is suggested.
if [ "$REMAT_SANITIZE" != ON ]; then
  code=0
  # shellcheck disable=SC3045 # dash and bash have it
  (ulimit -d 100000 && "$REMAT" fit "$work/small.ini" --batch 4000000 -j 1 >"$work/out" 2>"$work/err") || code=$?
  [ $code = 4 ] || complain "a model that can never fit: exit code $code; $(head -c 300 "$work/err")"
  out "does not fit into 97.7 MiB, the limit of data of this process (ulimit -d)"
  if grep -q "from --budget" "$work/out"; then complain "no budget is small enough: $(cat "$work/out")"; fi
fi

# An absurd size is answered at once.
printf '[Model]\nbatch_size = 1\n[in : input]\ninput_shape = 100000:100000:100000\n[fc : fully_connected]\nunit = 4\n[loss : cross_entropy]\n' >"$work/absurd.ini"
expect 4 fit "$work/absurd.ini" --budget 1GiB
finish
