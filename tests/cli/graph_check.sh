#!/bin/sh
# What `remat plan MODEL` writes for the graph of a training step can be checked by anybody: here by `remat check`, and by
# a few lines of Python that are written from the definition alone.
. tests/cli/support/expect.sh

graph=$work/graph.json plan=$work/plan.json
for model in convnet resnet transformer mlp; do
  for budget in "" yes; do
    set -- "examples/models/$model.ini" --graph-out "$graph" --graph-plan "$plan"
    if [ -n "$budget" ]; then # three quarters of the way down to the smallest budget
      sizes=$("$REMAT" fit "examples/models/$model.ini" --json | tr ',{}' '\n' |
        sed -n 's/.*"min_budget_bytes": //p; s/.*"keep_all_bytes": //p' | tr '\n' ' ')
      set -- "$@" --budget "$(echo "$sizes" | awk '{ printf "%d", $1 + ($2 - $1) / 4 }')"
    fi
    expect 0 plan "$@"
    expect 0 check "$plan" --profile "$graph"
    out "legal: "
    expect 0 check "$plan" --profile "$graph" --json
    cp "$work/out" "$work/figures.json"
    has_python && { python3 - "$graph" "$plan" "$work/figures.json" <<'END' || complain "$model $budget: by the definition it is another plan"; }
import json, sys
graph, plan, figures = (json.load(open(path)) for path in sys.argv[1:])
tensors, actions, schedule = graph["tensors"], graph["actions"], plan["schedule"]
ranges, latest, once = [], {}, [i for i, a in enumerate(actions) if a.get("once")]
assert [i for i in schedule if actions[i].get("once")] == once
for position, number in enumerate(schedule):
    action = actions[number]
    for tensor in action.get("reads", []) + action.get("updates", []):
        if not tensors[tensor].get("given"):
            latest[tensor][2] = position + 1
    before = dict(latest)
    for tensor in action.get("writes", []):
        latest[tensor] = [tensor, position, position + 1, tensors[tensor]["bytes"], None]
        ranges.append(latest[tensor])
        if action.get("in_place", [None, None])[1] == tensor:
            latest[tensor][4] = before[action["in_place"][0]]
    if action.get("workspace_bytes"):
        ranges.append([-1, position, position + 1, action["workspace_bytes"], None])
for tensor in graph.get("results", []):
    latest[tensor][2] = len(schedule) + 1
live = [sum(t["bytes"] for t in tensors if t.get("given"))] * len(schedule)
for tensor, born, ends, size, source in ranges:
    if source and source[2] == born + 1 and size <= source[3]:
        born += 1
    for position in range(born, min(ends, len(schedule))):
        live[position] += size
assert max(live) == plan["peak_bytes"] == figures["peak_bytes"], (max(live), plan["peak_bytes"])
assert sum(actions[i]["cost"] for i in schedule) == plan["total_cost"] == figures["total_cost"]
assert plan["arena_bytes"] == figures["arena_bytes"]
found = sorted([t, b, min(e, len(schedule))] for t, b, e, s, _ in ranges if s)
assert found == sorted(place[:3] for place in plan["places"])
END
  done
done

# A plan that was changed is refused.
sed 's/"total_cost": [0-9]*/"total_cost": 1/' "$plan" >"$work/cost.json"
expect 7 check "$work/cost.json" --profile "$graph"
err "total_cost: 1 is stated, but the schedule comes to"
sed 's/"schedule": \[0, /"schedule": [/' "$plan" >"$work/first.json"
expect 7 check "$work/first.json" --profile "$graph"
err "$work/first.json: step 0: "
# Neither is the plan of a chain, a model, or no graph at all.
expect 0 plan examples/models/mlp.ini --strategy none -o "$work/chain_plan.json" --profile-out "$work/chain.json"
expect 3 check "$work/chain_plan.json" --profile "$graph"
err "it must be 'remat-graph-plan'"
expect 3 check "$plan" --profile "$work/chain.json"
err "it must be 'remat-plan'"
expect 3 check "$work/chain_plan.json" --profile "$work/chain_plan.json"
err 'this is a plan; give the profile that it is for'
expect 3 check "$plan" --profile examples/models/mlp.ini
err "--graph-out FILE the graph"
expect 2 plan "$work/chain.json" --graph-out "$work/none.json"
err "only for models"
[ ! -e "$work/none.json" ] || complain "a graph was written for a profile"
finish
