#!/bin/sh
# What plan, sweep, fit and arena say of graphs at the edges: without names, with more actions than a table shows, without any
# action, and with nothing that may be recomputed.
. tests/cli/support/expect.sh

no_out() { ! grep -q -- "$1" "$work/out" || complain "stdout has '$1': $(head -c 600 "$work/out")"; }
rows() { grep -cE ' (keep|recompute)$' "$work/out"; }
COLUMNS=100 && export COLUMNS

# 60 actions that may run again, without a name or a unit.
awk 'BEGIN {
  n = 60
  printf "{\"format\": \"remat-graph\", \"version\": 1,\n \"tensors\": [{\"bytes\": 10}"
  for (i = 1; i <= n; i++) printf ", {\"bytes\": 100}"
  for (i = 0; i <= n; i++) printf ", {\"bytes\": 10}"
  printf "],\n \"actions\": [{\"once\": true, \"writes\": [0], \"cost\": 0}"
  for (i = 1; i <= n; i++) printf ",\n  {\"reads\": [%d], \"writes\": [%d], \"cost\": 3}", i - 1, i
  printf ",\n  {\"once\": true, \"reads\": [%d], \"writes\": [%d], \"cost\": 1}", n, 2 * n + 1
  for (i = n; i > 0; i--)
    printf ",\n  {\"once\": true, \"reads\": [%d, %d], \"writes\": [%d], \"cost\": 3}", i, n + 1 + i, n + i
  print "]}"
}' | file long.json
long=$work/long.json
expect 0 plan "$long"
out 'graph, 122 tensors, 122 actions, strategy none'
out '       1  action 1 ' && out '      20  action 20 ' && out '      41  action 41 '
out '20 more actions; --all-layers shows them'
no_out '  action 30 '
[ "$(rows)" = 40 ] || complain "$(rows) rows, not 40"
out 'cost      361, 0.0 % more than keeping everything (361)'
out 'optimal: no legal schedule costs less'
out 'note      everything is kept'
expect 0 plan "$long" --all-layers --budget 1500 --plot
[ "$(rows)" = 60 ] || complain "$(rows) rows, not 60"
no_out 'more actions'
out 'the cheapest plan that was found' # and no word of optimal
out 'the line is the budget of 1.46 KiB'
grep -qE "peak [0-9.]+ KiB, action [0-9]+" "$work/out" || complain "the picture names no action"
expect 0 plan "$long" --budget 1MiB --plot # far above the peak: no line
out 'memory over time' && no_out 'the line is'
expect 0 sweep "$long"
out '  knee' && out 'more plans lie between these; --all shows them'
expect 0 sweep "$long" --all
no_out '--all shows'
expect 4 fit "$long" --budget 1500 --strategy full
err "with this strategy the peak does not fit into 1500 bytes"
expect 2 fit "$long" --profile "$long"
expect 0 arena "$long"
out 'tensor 5,5,'

# No action at all.
echo '{"format": "remat-graph", "version": 1, "name": "", "cost_unit": "", "tensors": [], "actions": []}' | file empty.json
expect 0 plan "$work/empty.json" --plot
out 'graph, 0 tensors, 0 actions' && out 'peak      0 bytes (0 B)' && no_out 'where' && no_out 'memory over time'
expect 0 plan "$work/empty.json" --budget 0
out 'smallest  0 bytes (0 B), proven: no schedule needs less' && no_out 'bound '
expect 0 sweep "$work/empty.json" --plot
out ', 1 plan' && no_out ', 1 plans' && out '+0.0 %'
expect 0 fit "$work/empty.json" --json
out '"fits": true' && no_out 'budget_bytes": 1000'
expect 0 arena "$work/empty.json"
err '0 tensors in 0 bytes'

# Everything runs once and costs nothing. A name with quotes, a tensor of no bytes, workspaces of actions with and without names.
file once.json <<'JSON'
{"format": "remat-graph", "version": 1,
 "tensors": [{"bytes": 64}, {"name": "none", "bytes": 0}, {"name": "c \"d\"", "bytes": 640}],
 "actions": [{"once": true, "writes": [0, 1, 2], "cost": 0, "workspace_bytes": 100},
             {"once": true, "reads": [0, 2], "cost": 0, "workspace_bytes": 30, "name": "end"}]}
JSON
expect 0 plan "$work/once.json" --budget 1000
no_out 'decision'
out 'peak      804 bytes (804 B) where action 0 runs, 100.0 % of keeping everything'
out 'cost      0, 0.0 % more than keeping everything (0)'
out 'smallest  804 bytes (804 B), proven: no schedule needs less'
expect 4 plan "$work/once.json" --budget 803
expect 0 arena "$work/once.json"
out 'tensor 0,0,2,64,' && out '"c ""d""",0,2,640,' && out 'workspace of 0,0,1,128,' && out 'end,1,2,64,'
no_out 'none'
expect 0 plan "$work/once.json" --json --no-schedule
no_out 'places'

# What other programs write: a byte order mark, and names of several lines.
printf '\357\273\277' | cat - "$work/once.json" | sed 's/"none"/"no\\nne"/; s/"end"/"the\\r\\nend"/' | file marked.json
expect 0 plan "$work/marked.json"
expect 0 arena "$work/marked.json"
out 'the  end,1,2,64,'

# Nothing has to run. An action without a name that needs too much.
file idle.json <<'JSON'
{"format": "remat-graph", "version": 1, "tensors": [{"bytes": 64}, {"bytes": 64}],
 "actions": [{"writes": [0], "cost": 5}, {"reads": [0], "writes": [1], "cost": 5}]}
JSON
expect 0 plan "$work/idle.json"
out 'no bound is known for the cheapest schedule: nothing has to run' && no_out 'above the cheapest'
expect 4 plan "$work/long.json" --budget 100
err ': action ' && err ' needs it'

# A mistyped format counts as the most similar one.
echo '{"format": "remat-grpah", "version": 1, "tensors": []}' | file mistyped.json
for command in plan sweep fit; do
  expect 3 $command "$work/mistyped.json"
  err "'remat-grpah' was found; it must be 'remat-graph'"
done
echo '{"format": "remat-graph-paln", "version": 1, "schedule": []}' | file mistyped_plan.json
expect 3 check "$work/mistyped_plan.json" --profile "$work/once.json"
err "'remat-graph-paln' was found; it must be 'remat-graph-plan'"

# Where running an action again could change what a tensor holds, it runs once. That is not proven to be cheapest: here the first
# action could be left out.
file twice.json <<'JSON'
{"format": "remat-graph", "version": 1, "tensors": [{"bytes": 64}, {"bytes": 64}],
 "actions": [{"writes": [0], "cost": 5}, {"writes": [0], "cost": 5}, {"once": true, "reads": [0], "writes": [1], "cost": 5}]}
JSON
expect 0 plan "$work/twice.json"
expect 0 plan "$work/twice.json" --budget 128 --json
out '"total_cost": 15' && out '"lower_bound_cost": 5'
cp "$work/out" "$work/twice_plan.json"
expect 0 check "$work/twice_plan.json" --profile "$work/twice.json"
expect 4 plan "$work/twice.json" --budget 127
expect 0 sweep "$work/twice.json"
expect 0 fit "$work/twice.json"
expect 3 plan "$work/twice.json" --strategy full
err 'action 1, tensor 0: two actions before the backward pass write it; give each its own tensor'

# Most programs write a graph into one line, so the number in its list says which tensor or action is wrong.
echo '{"format": "remat-graph", "version": 1, "tensors": [{"bytes": 1}, {"bytes": -1}], "actions": []}' | file one_line.json
expect 3 plan "$work/one_line.json"
err 'one_line.json:1: bytes: -1 is not allowed' && err '(number 1 in tensors)'
echo '{"format": "remat-graph", "version": 1, "tensors": [], "actions": [{"cost": 1}, {}]}' | file one_line.json
expect 3 plan "$work/one_line.json"
err 'cost: missing; every action needs it (number 1 in actions)'

# A plan where a graph should stand; a smallest budget below its bound.
expect 0 plan "$long" --budget 1500 -o "$work/plan.json"
expect 3 sweep "$work/plan.json"
err 'plan.json: this is a plan; give the graph or the model that it is for'
expect 3 check "$work/plan.json" --profile "$work/plan.json"
err 'this is a plan; give the graph that it is for'
sed 's/"min_budget_bytes": [0-9]*/"min_budget_bytes": 1/' "$work/plan.json" | file below.json
expect 7 check "$work/below.json" --profile "$long"
err 'min_budget_bytes: 1 is stated, but min_budget_bound_bytes is'

# Sums that no schedule could have.
echo '{"format": "remat-graph", "version": 1, "tensors": [{"bytes": 4611686018427387904}], "actions": []}' | file bytes.json
expect 3 plan "$work/bytes.json"
err 'bytes.json:1: the bytes of all tensors together are too many'
cat <<'JSON' | file costs.json
{"format": "remat-graph", "version": 1, "tensors": [], "actions": [{"cost": 9223372036854775807},
 {"cost": 1}]}
JSON
expect 3 plan "$work/costs.json"
err 'costs.json:2: action 1: cost: the sum over all actions'
sed 's/"cost": 1}/"cost": 0, "workspace_bytes": 9223372036854775807}/' "$work/costs.json" | file workspace.json
expect 3 plan "$work/workspace.json"
err 'workspace.json:2: action 1: workspace_bytes are too many'
finish
