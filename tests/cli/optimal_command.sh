#!/bin/sh
# `remat plan --budget`, `remat sweep` and `remat plan --compare`.
. tests/cli/support/expect.sh
profile=examples/transformer.json

# Under a budget the default is the cheapest schedule, with its proof.
expect 0 plan $profile --budget 6KiB --json -o "$work/plan.json"
out '"strategy": "optimal"'
out '"total_cost": 53000000'
out '"lower_bound_cost": 53000000'
out '"method_bound_cost": 53000000'
expect 0 check "$work/plan.json" -p $profile
expect 0 plan $profile --budget 6KiB
out "optimal: no legal schedule within the budget costs less"

# Both methods; the other strategies have none.
expect 0 plan $profile --budget 6KiB --method intervals --threads 2 --json
out '"method": "intervals"'
out '"total_cost": 53000000'
expect 0 plan $profile --budget 6KiB --method exhaustive --json
out '"method": "exhaustive"'
expect 2 plan $profile --budget 6KiB --method magic
err "use auto, exhaustive or intervals"
expect 2 plan $profile --strategy sqrt --method intervals
expect 2 plan $profile --budget 6KiB --threads 0

# Too small: the least budget, and the step that needs it.
expect 4 plan $profile --budget 4607 --json
out '"feasible": false'
out '"min_budget_bytes": 4608'
err "the step 'backward 5' (h2.ffn) needs it, however little is kept"
expect 0 plan $profile --budget 4608

# The curve: every point is a plan.
file expected.txt <<'END'
transformer-6, 6 layers, 9 plans, method exhaustive

          peak bytes                of all                  flop      more
               4,608    4.50 KiB     37.5%            72,000,000    60.00%
               5,120       5 KiB     41.7%            62,000,000    37.78%
               5,632    5.50 KiB     45.8%            57,000,000    26.67%
               6,144       6 KiB     50.0%            53,000,000    17.78%  knee
               7,168       7 KiB     58.3%            51,000,000    13.33%
               8,704    8.50 KiB     70.8%            50,000,000    11.11%
               9,728    9.50 KiB     79.2%            48,000,000     6.67%
              11,264      11 KiB     91.7%            47,000,000     4.44%
              12,288      12 KiB    100.0%            45,000,000     0.00%
END
expect 0 sweep $profile
diff "$work/expected.txt" "$work/out" || complain "the curve differs"
expect 0 sweep $profile --csv
[ "$(head -1 "$work/out")" = "peak_bytes,total_cost,overhead_percent,knee" ] || complain "the CSV has another head"
cp "$work/out" "$work/curve.csv"
tail -n +2 "$work/curve.csv" | while IFS=, read -r peak cost _; do
  "$REMAT" plan $profile --budget "$peak" --json --no-schedule | grep -q "\"total_cost\": $cost," ||
    { echo "FAILED: the plan at $peak does not cost $cost" >&2; exit 1; }
done || complain "a point of the curve is no plan"
expect 0 sweep $profile --json
out '"format": "remat-sweep"'
out '"knee": 3'
expect 2 sweep $profile --json --csv
expect 2 sweep
expect_stdin 0 $profile sweep - --method intervals
out "method intervals"

# All strategies side by side.
expect 0 plan $profile --compare --budget 6KiB
out "optimal                           6,144       6 KiB            53,000,000    17.78%  yes, no legal schedule is cheaper"
out "full:2                            6,144       6 KiB            60,000,000    33.33%  yes"
out "no: this is its smallest peak"
expect 0 plan $profile --compare
expect 0 plan $profile --compare --budget 6KiB --json
out '"strategy": "optimal", "feasible": true, "peak_bytes": 6144, "total_cost": 53000000, "fits": true'
expect 2 plan $profile --compare --strategy none

# Modes: a lossless one is used where it helps, a lossy one only where it is allowed.
file modes.json <<'END'
{"format": "remat-profile", "version": 1, "layers": [
 {"index": 0, "type": "ffn", "activation_bytes": 100, "output_bytes": 10, "recompute_flops": 50,
  "modes": [{"name": "disk", "activation_bytes": 20, "backward_cost": 104, "forward_cost": 54},
            {"name": "half", "activation_bytes": 50, "lossless": false, "backward_cost": 101}]},
 {"index": 1, "type": "ffn", "activation_bytes": 100, "output_bytes": 10, "recompute_flops": 50}]}
END
expect 0 plan "$work/modes.json" --budget 150 --json
out '"decision": "disk"'
cp "$work/out" "$work/plan.json"
expect 0 check "$work/plan.json" -p "$work/modes.json"
expect 0 plan "$work/modes.json" --budget 180 --allow-lossy --json
out '"decision": "half"'

# An empty chain.
file empty.json <<'END'
{"format": "remat-profile", "version": 1, "layers": []}
END
expect 0 plan "$work/empty.json" --budget 0 --json
out '"peak_bytes": 0'
expect 0 sweep "$work/empty.json"
finish
