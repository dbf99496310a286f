#!/bin/sh
# plan, sweep, fit, check and arena on a graph file. The graph is small enough to know all answers: x is given with 8 bytes;
# f1, f2 and f3 make h1, h2 and h3 with 64, 32 and 64 bytes; the backward actions read them in reverse order.
. tests/cli/support/expect.sh

no_out() { ! grep -q -- "$1" "$work/out" || complain "stdout has '$1': $(head -c 600 "$work/out")"; }

graph=$work/graph.json plan=$work/plan.json
file graph.json <<'END'
{"format": "remat-graph", "version": 1, "name": "three", "cost_unit": "ns",
 "tensors": [{"name": "x", "bytes": 8, "given": true}, {"name": "h1", "bytes": 64}, {"name": "h2", "bytes": 32},
             {"name": "h3", "bytes": 64}, {"name": "g3", "bytes": 16}, {"name": "g2", "bytes": 16}, {"bytes": 16}],
 "actions": [{"name": "f1", "reads": [0], "writes": [1], "cost": 5},
             {"name": "f2", "reads": [1], "writes": [2], "cost": 7},
             {"name": "f3", "reads": [2], "writes": [3], "cost": 9},
             {"name": "b3", "once": true, "reads": [3], "writes": [4], "cost": 10, "workspace_bytes": 24},
             {"name": "b2", "once": true, "reads": [2, 4], "writes": [5], "cost": 10, "in_place": [4, 5]},
             {"once": true, "reads": [1, 5], "writes": [6], "cost": 10}],
 "results": [6]}
END

# Everything kept: x, h1, h2, h3, g3 and a workspace of 24 are live where b3 runs.
expect 0 plan "$graph" --json
out '"strategy": "none", "feasible": true'
out '"peak_bytes": 208' && out '"total_cost": 51' && out '"base_cost": 51' && out '"base_peak_bytes": 208'
out '"schedule": [0, 1, 2, 3, 4, 5]'
cp "$work/out" "$plan"
expect 0 check "$plan" --profile "$graph"
out 'legal: 6 actions, peak 208 bytes (208 B), cost 51'

# Less than 208 bytes do if h1 is made again for the last action, or more.
expect 0 plan "$graph" --budget 200 --json
out '"strategy": "optimal", "feasible": true' && out '"budget_bytes": 200'
out '"total_cost": 56'
cp "$work/out" "$plan"
expect 0 check "$plan" --profile "$graph" --json
out '"legal": true, "actions": 7'
expect 0 plan "$graph" --budget 200
out 'three, 7 tensors, 6 actions'
out 'recompute'
out 'cost      56 ns, 9.8 % more than keeping everything (51)'
expect 0 plan "$graph" --budget 200 --plot --all-layers
out 'memory over time, the line is the budget of 200 B'
expect 0 plan "$graph" --budget 200 --json --no-schedule
out '"total_cost": 56'
no_out 'schedule'
expect 0 plan "$graph" --budget 200 -o "$work/saved.json"
expect 0 check "$work/saved.json" --profile "$graph"
expect 0 plan "$graph" --budget 200 --graph-plan "$work/saved2.json"
cmp "$work/saved.json" "$work/saved2.json" || complain "-o and --graph-plan write different plans of a graph"
expect_stdin 0 "$graph" plan - --budget 200 --json
cmp "$work/out" "$plan" || complain "the plan of standard input differs"

# Where b3 runs, x, h3, g3 and the workspace are live in any schedule: 112 bytes.
expect 4 plan "$graph" --budget 100 --json
out '"feasible": false' && out '"min_budget_bytes": ' && out '"min_budget_bound_bytes": 120'
no_out 'schedule'
err 'the peak does not fit into 100 bytes'
expect 4 plan "$graph" --budget 100
out 'feasible  false'
out 'smallest  120 bytes (120 B), proven: no schedule needs less'
expect 4 plan "$graph" --budget 200 --strategy none
expect 0 plan "$graph" --strategy full --json
out '"strategy": "full"'
expect 2 plan "$graph" --strategy sometimes
for option in --compare "--count kept" --allow-lossy "--method auto" "--profile $graph" "--profile-out $work/x" \
  "--graph-out $work/x" "--batch 2"; do
  # shellcheck disable=SC2086 # an option and its value
  expect 2 plan "$graph" $option
  err 'FILE is a graph'
done
[ ! -e "$work/x" ] || complain "a file was written for a refused option"

expect 0 sweep "$graph"
out 'three, 7 tensors, 6 actions'
expect 0 sweep "$graph" --json
out '"base_cost": 51, "base_peak_bytes": 208'
out '{"peak_bytes": 208, "arena_bytes": 320, "total_cost": 51, "recomputed": 0}'
expect 0 sweep "$graph" --csv
out '208,320,51,0.0000,0,'
expect 0 sweep "$graph" --plot
out 'cost over memory'
expect 2 sweep "$graph" --method auto
expect 2 sweep "$graph" --batch 2

expect 0 fit "$graph"
out 'keep all  208 bytes' && out "without a budget" && out "smallest  120 bytes (120 B), proven: no schedule needs less"
expect 0 fit "$graph" --budget 200 --json
out '"fits": true, "budget_bytes": 200' && out '"keep_all_bytes": 208' && out '"total_cost": 56'
expect 4 fit "$graph" --budget 100
out 'no schedule was found that fits into 100 B'
expect 4 fit "$graph" --budget 100 --json
out '"fits": false'
expect 2 fit "$graph" --batch 2
err 'only for models'
printf 'index,type,activation_bytes,recompute_flops\n0,ffn,4,1\n' | file profile.csv
expect 3 fit "$work/profile.csv"
err 'FILE is a profile'

# g2 takes the place of g3, so that both are one row. Given tensors have none.
expect 0 arena "$graph"
out 'h1,0,6,64,'
out 'g3,3,6,64,'
no_out '^x,' && no_out '^g2,'
err '6 tensors in '
expect 2 arena "$plan"
err 'which has no sizes'
expect 0 arena "$plan" --profile "$graph" --json
out '"id": "h1"'
sed 's/"schedule": \[0, /"schedule": [/' "$plan" >"$work/broken.json"
expect 7 arena "$work/broken.json" --profile "$graph"
err 'broken.json'
expect 3 arena "$plan" --profile "$plan"

# An action that nothing needs is left out, and is no negative number of runs.
file unneeded.json <<'END'
{"format": "remat-graph", "version": 1, "tensors": [{"bytes": 64}, {"bytes": 64}, {"bytes": 64}],
 "actions": [{"writes": [0], "cost": 5}, {"reads": [0], "writes": [1], "cost": 7},
             {"once": true, "reads": [0], "writes": [2], "cost": 9}]}
END
expect 0 plan "$work/unneeded.json" --budget 128
out 'leave out'
no_out 'saves no memory'
expect 0 sweep "$work/unneeded.json" --csv
out '128,128,14,-33.3333,0,'

# What is wrong with a file is said, and where.
sed 's/"cost": 7/"cost": -7/' "$graph" >"$work/negative.json"
for command in plan sweep fit arena; do
  expect 3 "$command" "$work/negative.json"
  err 'negative.json'
done
sed 's/"reads": \[0\]/"reads": [3]/' "$graph" >"$work/unwritten.json"
sed 's/"results": \[[0-9]*/"results": [0/' "$graph" >"$work/given.json"
for command in plan sweep fit arena; do
  expect 3 "$command" "$work/unwritten.json"
  err "unwritten.json:4: action f1 needs tensor h3, which no action before it writes"
  expect 3 "$command" "$work/given.json"
  err "given.json:10: results: tensor x is given"
done
finish
