#!/bin/sh
# `remat plan` of a model: the plan is one of its chain, it checks, and training by it gives the same arena and bits.
. tests/cli/support/expect.sh
model=examples/models/resnet.ini

number() { grep -o "\"$1\": [0-9.e+-]*" "$2" | head -1 | sed 's/.*: //'; }

# For every way of planning: written, checked, run.
expect 0 train $model --strategy none --steps 2 --json --quiet
loss=$(number last_loss "$work/out")
[ -n "$loss" ] || complain "no loss"
for how in "--budget 9MiB" "--budget 8MB" "--strategy every-nth:2" "--strategy full:2" "--strategy none" \
           "--strategy budget --budget 12MiB"; do
  # shellcheck disable=SC2086 # two words each
  expect 0 plan $model $how -o "$work/plan.json" --profile-out "$work/chain.json"
  grep -q '"arena_bytes"' "$work/plan.json" || complain "$how: the plan states no arena"
  expect 0 check "$work/plan.json" --profile "$work/chain.json"
  expect 0 train $model --plan "$work/plan.json" --steps 2 --json --quiet
  [ "$(number last_loss "$work/out")" = "$loss" ] || complain "$how: training by the plan gives another loss"
  [ "$(number total_bytes "$work/out")" -le "$(number total_bytes "$work/plan.json")" ] ||
    complain "$how: training takes more than planned"
  [ "$(number allocated_bytes "$work/out")" = "$(number total_bytes "$work/out")" ] || complain "$how: not as predicted"
done
# A plan that does not belong to the model, or was changed, is refused.
expect 7 train examples/models/convnet.ini --plan "$work/plan.json" --steps 1 --quiet
sed 's/"total_cost": [0-9]*/"total_cost": 1/' "$work/plan.json" >"$work/changed.json"
expect 7 train $model --plan "$work/changed.json" --steps 1 --quiet

# For people: layers, the breakdown, what it comes to. Its parts sum to the total.
expect 0 plan $model --budget 9MiB
out "residual net, 19,034 parameters, batch 32, strategy optimal"
out "recompute"
out "saved ("
awk '/^weights /,/^scratch /{ gsub(",", ""); for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/) { sum += $i; break } }
     /^total /{ gsub(",", ""); if ($2 != sum) exit 1; found = 1 } END { exit !found }' "$work/out" ||
  complain "the parts do not sum to the total"
expect 0 plan $model --budget 9MiB --plot
out "memory over time"
expect 0 plan examples/models/transformer.ini --budget 300MiB
out "more layers; --all-layers shows them"
expect 0 plan examples/models/transformer.ini --budget 300MiB --all-layers
out "input"

# From standard input; another batch.
expect_stdin 0 $model plan - --budget 9MiB --json --no-schedule
out '"total_budget_bytes": 9437184'
if grep -q '"schedule"' "$work/out"; then complain "a schedule in spite of --no-schedule"; fi
expect 0 plan $model --strategy none --batch 8
out "batch 8"

# Blocks decide: figures, but no plan of a chain.
expect 0 plan $model
out "the blocks of the model decide"
expect 0 plan $model --json
out '"strategy": "blocks", "feasible": true'
if grep -q '"schedule"' "$work/out"; then complain "blocks have no schedule"; fi
expect 2 plan $model --profile-out "$work/none.json"
err "--strategy or --budget"
expect 2 plan $model -o "$work/none.json"

# Too small: what would do, and that does.
expect 4 plan $model --budget 5MiB --json
out '"feasible": false'
err "the budget of 5 MiB is too small"
least=$(number min_budget_bytes "$work/out")
expect 0 plan $model --budget "$least" --json --no-schedule
[ "$(number min_total_budget_bytes "$work/out")" = "$least" ] || complain "another least budget in the plan file"
expect 0 plan $model --budget 9MiB --json
[ "$(number min_total_budget_bytes "$work/out")" = "$least" ] || complain "the least budget depends on the budget"
cp "$work/out" "$work/nine.json"
expect 0 plan $model --strategy none --json --no-schedule
[ "$(number min_total_budget_bytes "$work/out")" = "$(number total_bytes "$work/out")" ] || complain "none needs what it takes"
[ "$(number lower_bound_cost "$work/out")" = "$(number total_cost "$work/out")" ] || complain "nothing is cheaper than none"
expect 0 plan $model --budget 9MiB -o "$work/plan.json" --profile-out "$work/chain.json"
expect 0 check "$work/plan.json" --profile "$work/chain.json"
silent err
# min_budget_bytes and lower_bound_cost are those of the chain: what a plan of the chain says.
expect 4 plan "$work/chain.json" --budget 0 --json
[ "$(number min_budget_bytes "$work/out")" = "$(number min_budget_bytes "$work/nine.json")" ] ||
  complain "another least budget of the chain"
expect 0 plan "$work/chain.json" --budget "$(number peak_bytes "$work/nine.json")" --json --no-schedule
[ "$(number lower_bound_cost "$work/out")" = "$(number lower_bound_cost "$work/nine.json")" ] ||
  complain "another bound of the chain"
[ "$(number lower_bound_cost "$work/nine.json")" -gt "$(number base_cost "$work/nine.json")" ] ||
  complain "the bound does not know the budget"
# The file counts the layers of the model as the table for people does; the page of the plan has the same numbers.
expect 0 plan $model --budget 9MiB
grep -q "layers kept $(($(number model_layers "$work/plan.json") - $(number recomputed_model_layers "$work/plan.json"))), recomputed $(number recomputed_model_layers "$work/plan.json");" "$work/out" ||
  complain "the plan file counts layers in another way"
expect 0 report "$work/plan.json" --profile "$work/chain.json" --no-curve --json
out "\"model_layers\":$(number model_layers "$work/plan.json"),\"recomputed_model_layers\":$(number recomputed_model_layers "$work/plan.json")"
# A piece that keeps its input only is recomputed.
expect 0 plan examples/models/gpt.ini --budget 16MiB -o "$work/gpt.json" --profile-out "$work/gpt_chain.json"
out "recompute, keep input only"
expect 0 plan "$work/gpt_chain.json" --budget "$(number peak_bytes "$work/gpt.json")"
out " $(grep -c '"decision": "recompute"\|"decision": "input only' "$work/gpt.json") of $(grep -c '"decision": ' "$work/gpt.json") layers recomputed"
expect 0 report "$work/plan.json" -o "$work/page.html"
[ "$(cat "$work/err")" = "wrote $work/page.html" ] || complain "$(cat "$work/err")"
grep -q "\"min_total_budget_bytes\": *$least" "$work/page.html" || complain "the page has another least budget"
expect 0 report "$work/plan.json" --profile "$work/chain.json" -o "$work/page.html"
grep -q "\"min_budget_bytes\": *$(number min_budget_bytes "$work/nine.json")" "$work/page.html" ||
  complain "the page of the chain has another least budget"
expect 4 plan $model --budget $((least - 64))
out "feasible  false"
expect 4 plan $model --strategy none --budget 9MiB --json
out '"strategy": "none", "feasible": false'

# Names that do not fit into the name of a piece: the piece has a number, and its plan can be trained with.
a=$(printf '%0150d' 1) b=$(printf '%0150d' 2) c=$(printf '%0150d' 3)
printf '%s\n' '[Model]' 'batch_size = 4' '[Optimizer : sgd]' '[Dataset : random]' 'samples = 8' '[in : input]' 'input_shape = 8' \
  "[a$a : fully_connected]" 'unit = 8' "[b$b : activation]" 'activation = relu' "[c$c : fully_connected]" 'unit = 8' '[loss : mse]' >"$work/long.ini"
expect 0 plan "$work/long.ini" --strategy full -o "$work/long.json"
grep -q '"index": 0, "name": "piece 0", "decision": "recompute"' "$work/long.json" || complain "long names: $(grep '"name"' "$work/long.json")"
expect 0 train "$work/long.ini" --plan "$work/long.json" --steps 1 -q
# A plan that was refused is none to train with.
echo '{"format": "remat-plan", "version": 1, "strategy": "none", "feasible": false, "min_budget_bytes": 9}' >"$work/refused.json"
expect 3 train "$work/long.ini" --plan "$work/refused.json" --steps 1 -q
err "the plan is infeasible, there is nothing to replay"

# The strategy `budget` keeps everything wherever that fits, and names a least budget that works.
keeps_all() {
  expect 0 plan "$1" --strategy budget --budget "$2" --json --no-schedule
  [ "$(number total_cost "$work/out")" = "$(number base_cost "$work/out")" ] || complain "$1 recomputes within $2"
}
for name in convnet mlp spirals gpt resnet; do
  expect 0 plan examples/models/$name.ini --strategy none --json --no-schedule
  all=$(number total_bytes "$work/out")
  keeps_all examples/models/$name.ini "$all"
  keeps_all examples/models/$name.ini $((all + 64))
  keeps_all examples/models/$name.ini $((all * 2))
  expect 4 plan examples/models/$name.ini --strategy budget --budget 64 --json
  least=$(number min_budget_bytes "$work/out")
  expect 0 plan examples/models/$name.ini --strategy budget --budget "$least" --json --no-schedule
  [ "$(number min_total_budget_bytes "$work/out")" = "$least" ] || complain "$name: another least budget at $least"
  expect 4 plan examples/models/$name.ini --strategy budget --budget $((least - 64))
done
expect 0 plan examples/transformer.json --strategy none --json --no-schedule
all=$(number peak_bytes "$work/out")
keeps_all examples/transformer.json "$all"
keeps_all examples/transformer.json $((all + 1))

# What goes with profiles only, and with models only.
expect 2 plan $model --compare
expect 2 plan $model --method intervals
expect 2 plan examples/transformer.json --profile-out "$work/none.json"
expect 2 plan examples/transformer.json --batch 3
expect 2 plan $model --batch 0
expect 3 plan $model --profile examples/transformer.json

# Measured costs: the same names, other figures, and a plan that runs with the same profile.
expect 0 profile $model --repeats 1 -o "$work/costs.json"
expect 0 plan $model --profile "$work/costs.json" --budget 9MiB -o "$work/plan.json" --profile-out "$work/chain.json"
expect 0 check "$work/plan.json" --profile "$work/chain.json"
expect 0 train $model --plan "$work/plan.json" --profile "$work/costs.json" --steps 2 --json --quiet
out '"cost_measured": true'
[ "$(number last_loss "$work/out")" = "$loss" ] || complain "another loss with measured costs"
finish
