#!/bin/sh
# What plans of graphs claim where a tensor has two writers, where weights are updated, and where sums are large.
. tests/cli/support/expect.sh

no_out() { ! grep -q -- "$1" "$work/out" || complain "stdout has '$1': $(head -c 600 "$work/out")"; }
head='"format": "remat-graph", "version": 1'

# Nobody needs `again` in this order. In another one it takes the place of `first`: 0 1 2 3 5 4 costs 105, and its peak is 13.
echo "{$head, \"tensors\": [{\"bytes\": 4}, {\"bytes\": 4}, {\"bytes\": 9}], \"actions\": [
  {\"name\": \"first\", \"once\": true, \"writes\": [0], \"cost\": 1}, {\"name\": \"make\", \"writes\": [1], \"cost\": 100},
  {\"name\": \"use_made\", \"once\": true, \"reads\": [1], \"cost\": 1}, {\"name\": \"big\", \"once\": true, \"writes\": [2], \"cost\": 1},
  {\"name\": \"use\", \"once\": true, \"reads\": [0, 1], \"cost\": 1}, {\"name\": \"again\", \"writes\": [0], \"cost\": 1}]}" | file rival.json
expect 0 plan "$work/rival.json" --budget 13
no_out 'optimal: no legal' && no_out 'smallest .*proven'
expect 4 plan "$work/rival.json" --budget 12
err 'the smallest that was found takes 13 bytes'
expect 0 plan "$work/rival.json" --budget 13 --json
bound=$(sed -n 's/.*"lower_bound_cost": *\([0-9]*\).*/\1/p' "$work/out")
[ "$bound" -le 105 ] || complain "the bound of the cost is $bound, and a schedule costs 105"

# Nothing has to run, so that not even what is given lives anywhere.
echo "{$head, \"tensors\": [{\"bytes\": 3, \"given\": true}, {\"bytes\": 7}], \"actions\": [
  {\"reads\": [0], \"writes\": [1], \"cost\": 1}, {\"writes\": [1], \"cost\": 1}]}" | file idle.json
expect 0 plan "$work/idle.json" --budget 100 --json
bound=$(sed -n 's/.*"min_budget_bound_bytes": *\([0-9]*\).*/\1/p' "$work/out")
[ "$bound" = 0 ] || complain "an empty schedule has no bytes, but the bound is $bound"

# Eight layers. The first backward action updates the weight of the third layer, so that this one must not run again behind it.
awk -v head="$head" 'BEGIN {
  n = 8
  printf "{%s, \"tensors\": [{\"bytes\": 64}", head
  for (i = 1; i <= n; i++) printf ", {\"bytes\": 1000}"
  for (i = 0; i <= n; i++) printf ", {\"bytes\": 64}"
  for (i = 1; i <= n; i++) printf ", {\"bytes\": 64, \"given\": true}"
  printf "],\n \"actions\": [{\"once\": true, \"writes\": [0], \"cost\": 1}"
  for (i = 1; i <= n; i++) printf ",\n  {\"reads\": [%d, %d], \"writes\": [%d], \"cost\": 5}", i - 1, 2 * n + 1 + i, i
  printf ",\n  {\"once\": true, \"reads\": [%d], \"writes\": [%d], \"cost\": 1}", n, n + 1
  for (i = n; i > 0; i--)
    printf ",\n  {\"once\": true, \"reads\": [%d, %d], \"writes\": [%d]%s, \"cost\": 5}", 2 * n + 1 - i, i - 1, 2 * n + 2 - i,
      i == n ? ", \"updates\": [" 2 * n + 4 "]" : ""
  printf "],\n \"results\": [%d]}\n", 2 * n + 1
}' | file updated.json
for budget in 20000 7000; do
  expect 0 plan "$work/updated.json" --strategy budget --budget $budget -o "$work/plan.json"
  expect 0 check "$work/plan.json" --profile "$work/updated.json"
  ! grep -q 'reads another value' "$work/err" || complain "the plan within $budget computes something else"
done
expect 4 plan "$work/updated.json" --strategy budget --budget 1000
err 'with this strategy the peak does not fit'

# Running `f` once more would cost 2^63 and more; keeping all of `h` in a second place would take as many bytes.
echo "{$head, \"tensors\": [{\"bytes\": 8}, {\"bytes\": 8}], \"actions\": [{\"writes\": [0], \"cost\": 5000000000000000000},
  {\"once\": true, \"reads\": [0], \"writes\": [1], \"cost\": 1}, {\"once\": true, \"reads\": [1], \"workspace_bytes\": 100, \"cost\": 1},
  {\"once\": true, \"reads\": [0], \"cost\": 1}]}" | file dear.json
expect 0 plan "$work/dear.json" --budget 116
out 'everything is kept'
expect 4 plan "$work/dear.json" --budget 115
err 'the smallest possible takes 116 bytes'
expect 0 sweep "$work/dear.json"
awk -v head="$head" 'BEGIN {
  printf "{%s, \"tensors\": [{\"bytes\": 2000000000000000000}, {\"bytes\": 640}], \"actions\": [{\"writes\": [0], \"cost\": 5},\n", head
  printf "  {\"once\": true, \"reads\": [0], \"writes\": [1], \"cost\": 1}"
  for (i = 0; i < 5; i++)
    printf ",\n  {\"once\": true, \"reads\": [1], \"workspace_bytes\": 100, \"cost\": 1}, {\"once\": true, \"reads\": [0], \"cost\": 1}"
  print "]}"
}' | file wide.json
expect 0 plan "$work/wide.json"
expect 0 sweep "$work/wide.json"

# Sums a little below 2^61, where the chain planner stops, and above.
for cost in 70000000000000000 80000000000000000 90000000000000000 140000000000000000; do
  sed "s/\"cost\": 5/\"cost\": $cost/" "$work/updated.json" | file large.json
  expect 0 plan "$work/large.json" --budget 7000
done
finish
