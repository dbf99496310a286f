#!/bin/sh
# `remat sweep` of a model: every point is a plan that training keeps to.
. tests/cli/support/expect.sh
model=examples/models/resnet.ini

expect 0 sweep $model
out "costs modelled"
out "knee"
out "100.0%"
[ "$(grep -c knee "$work/out")" = 1 ] || complain "not one knee"

expect 0 sweep $model --csv
cp "$work/out" "$work/curve.csv"
[ "$(head -1 "$work/curve.csv")" = "total_bytes,arena_bytes,total_cost,overhead_percent,recomputed,knee" ] ||
  complain "the CSV has another head"
awk -F, 'NR > 2 && ($1 <= bytes || $3 >= cost) { exit 1 } { bytes = $1; cost = $3 } END { exit NR < 9 }' "$work/curve.csv" ||
  complain "memory does not rise, time does not fall, or there are fewer than eight points"
tail -1 "$work/curve.csv" | grep -q ',0.0000,0,0$' || complain "the last point does not keep all"

# Each point's budget gives its plan, and one byte less gives another.
tail -n +2 "$work/curve.csv" | awk 'NR % 5 == 1' | while IFS=, read -r total arena _; do
  "$REMAT" plan $model --budget "$total" --json --no-schedule >"$work/point" || exit 1
  grep -q "\"arena_bytes\": $arena, \"total_bytes\": $total," "$work/point" ||
    { echo "FAILED: the plan at $total has another arena" >&2; exit 1; }
done || complain "a point of the curve is no plan"
least=$(sed -n 2p "$work/curve.csv" | cut -d, -f1)
expect 4 plan $model --budget $((least - 1))
expect 0 train $model --budget "$least" --steps 1 --json --quiet
out "\"allocated_bytes\": $least"

expect 0 sweep $model --json
out '"format": "remat-sweep"'
out '"cost_measured": false'
if has_python; then
  python3 -c 'import json, sys; curve = json.load(open(sys.argv[1])); assert 0 <= curve["knee"] < len(curve["points"])' \
    "$work/out" || complain "the JSON is wrong"
fi
expect 0 sweep $model --plot
out "cost over memory"
expect_stdin 0 $model sweep - --batch 4
out "batch 4"
expect 0 sweep examples/models/gpt_bench.ini
out "more plans lie between these; --all shows them"
expect 0 sweep examples/models/gpt_bench.ini --all

expect 2 sweep $model --method intervals
expect 2 sweep examples/transformer.json --batch 2
expect 6 sweep $model --profile "$work/missing.json"
expect 0 profile $model --repeats 1 -o "$work/costs.json"
expect 0 sweep $model --profile "$work/costs.json"
out "costs measured"
finish
