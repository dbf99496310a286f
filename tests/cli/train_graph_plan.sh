#!/bin/sh
# `remat train --graph-plan FILE` trains with a schedule that somebody else made: the same bits, in the memory that its places
# need; what is illegal, over its budget or for another model is refused.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
number() { grep -o "\"$1\": [0-9.e+-]*" "$work/out" | head -1 | sed 's/.*: //'; }

graph=$work/graph.json plan=$work/plan.json
for model in examples/models/resnet.ini "$work/spirals.ini"; do
  expect 0 train "$model" --strategy none --steps 3 --json --quiet --save "$work/all.safetensors"
  loss=$(number last_loss)
  for strategy in none full sqrt; do
    expect 0 plan "$model" --strategy "$strategy" --graph-out "$graph" --graph-plan "$plan"
    expect 0 train "$model" --graph-plan "$plan" --steps 3 --json --quiet --save "$work/given.safetensors"
    [ "$(number last_loss)" = "$loss" ] || complain "$model $strategy: another loss"
    cmp -s "$work/all.safetensors" "$work/given.safetensors" || complain "$model $strategy: other weights"
    [ "$(number allocated_bytes)" = "$(number total_bytes)" ] || complain "$model $strategy: not as predicted"
    out '"strategy": "graph plan file"'
  done

  # A schedule that no planner of ours makes: every action that may run again runs twice, and has no places.
  has_python || continue
  python3 - "$graph" "$work/twice.json" <<'END' || complain "the schedule was not made"
import json, sys
graph = json.load(open(sys.argv[1]))
schedule = []
for number, action in enumerate(graph["actions"]):
    schedule += [number] * (1 if action.get("once") or "in_place" in action else 2)
json.dump({"format": "remat-graph-plan", "version": 1, "schedule": schedule}, open(sys.argv[2], "w"))
END
  expect 0 check "$work/twice.json" --profile "$graph"
  expect 0 train "$model" --graph-plan "$work/twice.json" --steps 3 --json --quiet --save "$work/given.safetensors"
  [ "$(number last_loss)" = "$loss" ] || complain "$model: another loss when actions run twice"
  cmp -s "$work/all.safetensors" "$work/given.safetensors" || complain "$model: other weights when actions run twice"
done

# A legal schedule that loads the labels after the first layer ran. A training loads all data first, and else does the same.
# One that leaves out the loss is legal, too, but no training.
if has_python; then
  expect 0 plan "$work/spirals.ini" --strategy none --graph-out "$graph" --graph-plan "$plan"
  python3 - "$graph" "$work/late.json" <<'END' || complain "the schedule was not made"
import json, sys
names = [action.get("name") for action in json.load(open(sys.argv[1]))["actions"]]
schedule = list(range(len(names)))
labels = names.index("out.load")
schedule.remove(labels)
schedule.insert(schedule.index(names.index("fc1")) + 1, labels)
json.dump({"format": "remat-graph-plan", "version": 1, "schedule": schedule}, open(sys.argv[2], "w"))
END
  expect 0 check "$work/late.json" --profile "$graph"
  expect 0 train "$work/spirals.ini" --strategy none --steps 3 --save "$work/all.safetensors"
  expect 0 train "$work/spirals.ini" --graph-plan "$work/late.json" --steps 3 --save "$work/given.safetensors"
  cmp -s "$work/all.safetensors" "$work/given.safetensors" || complain "other weights when labels are loaded late"
  python3 - "$graph" "$work/without_loss.json" <<'END' || complain "the schedule was not made"
import json, sys
names = [action.get("name") for action in json.load(open(sys.argv[1]))["actions"]]
schedule = [i for i in range(len(names)) if names[i] != "out"]
json.dump({"format": "remat-graph-plan", "version": 1, "schedule": schedule}, open(sys.argv[2], "w"))
END
  expect 7 train "$work/spirals.ini" --graph-plan "$work/without_loss.json" --steps 1
  err "without_loss.json: action out does not run"
fi

# The budget binds the whole memory, as always.
model=examples/models/resnet.ini
expect 0 plan $model --strategy sqrt --graph-out "$graph" --graph-plan "$plan"
expect 0 train $model --graph-plan "$plan" --steps 1 --json --quiet
total=$(number total_bytes)
expect 0 train $model --graph-plan "$plan" --steps 1 --quiet --budget "$total"
expect 4 train $model --graph-plan "$plan" --steps 1 --quiet --budget $((total - 1))
err "with this plan file the model"

# An illegal schedule, one over its own budget, one of another model, another file, no file.
sed 's/"schedule": \[0, /"schedule": [/' "$plan" >"$work/illegal.json"
expect 7 train $model --graph-plan "$work/illegal.json" --steps 1
err "illegal.json: step 0: "
sed 's/"feasible": true/"feasible": true, "budget_bytes": 1000/' "$plan" >"$work/over.json"
expect 7 train $model --graph-plan "$work/over.json" --steps 1
err "budget_bytes: 1000 is stated"
sed 's/\[0, 0, \([0-9]*\), [0-9]*\]/[0, 0, \1, 64]/' "$plan" >"$work/places.json"
cmp -s "$plan" "$work/places.json" || { expect 7 train $model --graph-plan "$work/places.json" --steps 1 && err "places"; }
expect 7 train "$work/spirals.ini" --graph-plan "$plan" --steps 1
err "plan.json"
expect 7 train $model --batch 7 --graph-plan "$plan" --steps 1
expect 3 train $model --graph-plan "$graph" --steps 1
err "it must be 'remat-graph-plan'"
expect 3 train $model --graph-plan $model --steps 1
expect 6 train $model --graph-plan "$work/none.json" --steps 1
expect 2 train $model --graph-plan "$plan" --strategy none
expect 2 train $model --graph-plan "$plan" --plan "$plan"
err "leave out --plan and --strategy"
expect 6 train $model --graph-plan "$plan" --steps 1 --save "$plan"
finish
