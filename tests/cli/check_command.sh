#!/bin/sh
# `remat check`: a schedule from anywhere is judged, and the first wrong step is named.
. tests/cli/support/expect.sh

file profile.json <<'END'
{"format": "remat-profile", "version": 1, "input_bytes": 1,
 "layers": [{"index": 0, "type": "other", "activation_bytes": 10, "recompute_flops": 5, "output_bytes": 4},
            {"index": 1, "type": "other", "activation_bytes": 20, "recompute_flops": 7, "output_bytes": 6,
             "modes": [{"name": "half", "activation_bytes": 9, "holds_output": false, "backward_cost": 15}]}]}
END
# check CODE SCHEDULE [STATED]: a minimal plan with these steps.
check() {
  printf '{"format": "remat-plan", "version": 1%s,\n "schedule": [%s]}\n' "${3-}" "$2" >"$work/plan.json"
  expect "$1" check "$work/plan.json" --profile "$work/profile.json"
}
f0='{"op": "forward", "layer": 0, "save": "keep"}'
f1='{"op": "forward", "layer": 1, "save": "keep"}'
loss='{"op": "loss"}'
b1='{"op": "backward", "layer": 1}'
b0='{"op": "backward", "layer": 0}'
good="$f0, $f1, $loss, $b1, $b0"

# By hand: 1 + 10 + 20 + 6 for y2, then 4 for y1 on top while layer 1 runs backward: 41. Cost 5 + 7 + 14 + 10.
check 0 "$good"
out "legal: 5 steps, peak 41 bytes (41 B), cost 36"
check 0 "$good" ', "peak_bytes": 41, "total_cost": 36, "base_cost": 36, "budget_bytes": 41, "kept_bytes": 30'
check 7 "$good" ', "peak_bytes": 42'
err "plan.json: peak_bytes: 42 is stated, but the schedule comes to 41"
check 7 "$good" ', "total_cost": 35'
check 7 "$good" ', "budget_bytes": 40'
err "budget_bytes: 40 is stated, but the peak of the schedule is 41"
check 7 "$good" ', "lower_bound_cost": 37'
check 7 "$good" ', "feasible": false'
check 7 "$good" ', "layers": [{"decision": "keep"}, {"decision": "recompute"}]'
err "layer 1: decision: 'recompute' is stated, but what the schedule does is 'keep'"
check 7 "$good" ', "layers": [{"forwards": 1}]'
err "the plan has 1 layers, the profile 2"

# The mode: 9 bytes and the output beside it.
check 0 "$f0, {\"op\": \"forward\", \"layer\": 1, \"save\": \"half\"}, $loss, {\"op\": \"drop\", \"what\": \"x\", \"layer\": 2}, $b1, $b0"
out "cost 37"
check 7 "$f0, {\"op\": \"forward\", \"layer\": 0, \"save\": \"half\"}, $f1, $loss, $b1, $b0"
err "the layer has no mode 'half'"

# Illegal steps, each with its number and reason.
check 7 "$f1, $f0, $loss, $b1, $b0"
err "step 0: 'forward 1, save keep' is not legal: its input, x 1, is not live"
check 7 "$f0, $f0, $f1, $loss, $b1, $b0"
err "step 1: 'forward 0, save keep' is not legal: s 0 is live already"
check 7 "$f0, $f1, $b1, $b0"
err "step 2: 'backward 1' is not legal: the loss has not run yet"
check 7 "$f0, $f1, $loss, $loss, $b1, $b0"
err "step 3: 'loss' is not legal: the loss ran already"
check 7 "$f0, $f1, $loss, $b0, $b1"
err "the gradient of its output, y 1, is not live"
check 7 "$f0, $f1, $loss, $b1"
err "layer 0 has had no backward"
check 7 "$f0, {\"op\": \"drop\", \"what\": \"x\", \"layer\": 1}, $f1, $loss, $b1, $b0"
err "x 1 is not live on its own"
check 7 "$f0, $f1, $loss, {\"op\": \"drop\", \"what\": \"s\", \"layer\": 1}, $b1, $b0"
err "step 4: 'backward 1' is not legal: its saved state, s 1, is not live"
check 7 "$good, {\"op\": \"backward\", \"layer\": 7}"
check 7 "$good, {\"op\": \"backward\", \"layer\": 2}"

# What is no plan at all.
check 3 '{"op": "jump"}'
err "'jump' is not a step"
check 3 '{"layer": 0}'
check 3 '{"op": "drop", "layer": 0}'
check 3 '{"op": "forward"}'
check 3 '{"op": "forward", "layer": -1}'
check 3 "5"
file plan.json <<'END'
{"format": "remat-plan", "version": 1}
END
expect 3 check "$work/plan.json" --profile "$work/profile.json"
err "schedule: missing"
file plan.json <<'END'
{"format": "remat-plan", "version": 2, "schedule": []}
END
expect 3 check "$work/plan.json" --profile "$work/profile.json"
err "version: 2 is unknown"
expect 3 check "$work/profile.json" --profile "$work/profile.json"
err "it must be 'remat-plan'"

# Every strategy's plan passes, also through a pipe.
for strategy in none full full:2 selective:0.5 attention-only ffn-only every-nth:2 largest:3 sqrt revolve:2 online:2; do
  "$REMAT" plan examples/transformer.json -s $strategy --json | "$REMAT" check - -p examples/transformer.json >/dev/null ||
    complain "the plan of $strategy fails its check"
done
# A model in the place of the profile: what it is, and how to get one.
check 0 "$good"
expect 3 check "$work/plan.json" --profile examples/models/gpt.ini
err "gpt.ini: this is a model, not a profile"
err "--profile-out FILE"
finish
