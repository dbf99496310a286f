#!/bin/sh
# remat report: which files it takes, what it refuses, and that the page is whole.
. tests/cli/support/expect.sh

expect 0 plan examples/transformer.json --budget 6KiB -o "$work/plan.json"
expect 0 report "$work/plan.json" --profile examples/transformer.json -o "$work/page.html"
silent out
err "wrote $work/page.html"
[ "$(wc -l <"$work/err")" = 1 ] || complain "it says more than what was written"
grep -q '"peak_bytes":6144' "$work/page.html" || complain "the page does not have the plan's peak"
grep -q 'Permission is hereby granted' "$work/page.html" || complain "the page lacks the chart library's licence"
tail -1 "$work/page.html" | grep -q '</html>' || complain "the page is cut off"
if grep -n 'src="http\|href="http\|@import\|url(http' "$work/page.html"; then complain "the page refers to other pages"; fi

# A profile among the files is the profile of the plans; the page goes to standard output where that is no terminal.
expect 0 report examples/transformer.json "$work/plan.json" --json
out '"label":"transformer.json"'
out '"label":"plan.json"'
out '"memory":'
out '"curve":'
expect 0 report examples/transformer.json
out '<!doctype html>'
expect_stdin 0 "$work/plan.json" report - --json --profile examples/transformer.json
out "\\u003cstdin>"
expect 0 report examples/transformer.json --no-curve --no-arena --json
if grep -q '"curve"\|"arena"' "$work/out"; then complain "what was left out is there"; fi

# A plan alone has its figures and decisions.
expect 0 report "$work/plan.json" --json
out '"decision":["recompute"'
if grep -q '"memory"' "$work/out"; then complain "memory without a profile"; fi

# CSV is a profile too. Another profile than the plan's is refused, and so is what is neither.
printf 'index,type,activation_bytes,recompute_flops\n0,ffn,10,5\n' >"$work/small.csv"
expect 0 report "$work/small.csv" -o "$work/small.html"
expect 7 report "$work/plan.json" --profile "$work/small.csv" -o "$work/no.html"
[ ! -e "$work/no.html" ] || complain "a page was written all the same"
printf '{"format": "remat-arena", "version": 1}' >"$work/arena.json"
expect 3 report "$work/arena.json"
err "not a profile, a graph, a plan, a model or the log of a run"
printf '{"format": ' >"$work/broken.json"
expect 3 report "$work/broken.json"
err "broken.json"
expect 6 report "$work/nowhere.json"
expect 6 report examples/transformer.json -o "$work/no/such/folder/page.html"
expect 2 report
err "FILE is missing"
[ "$("$REMAT" report examples/transformer.json >/dev/full 2>"$work/err"; echo $?)" = 6 ] || complain "a full disk is not noticed"

# A model, planned as training would; a budget that is too small says what would do.
expect 0 report examples/models/mlp.ini --strategy full -o "$work/model.html"
err "wrote $work/model.html"
expect 0 report examples/models/mlp.ini --strategy full --json
silent err
# Weights and arrays belong elsewhere.
# Every thread has workspace of its own: the report is of the threads that were asked for, as the plan is.
for threads in 1 3; do
  total=$("$REMAT" plan examples/models/mlp.ini --threads $threads --json --no-schedule | sed -n 's/.*"total_bytes": \([0-9]*\).*/\1/p')
  expect 0 report examples/models/mlp.ini --threads $threads --json --no-curve
  out "\"total_bytes\":${total:-none},"
done
expect 0 train examples/models/mlp.ini --steps 0 -q --save "$work/w.safetensors"
expect 0 convert examples/models/mlp.ini -w "$work/w.safetensors" -o "$work/w.pt"
err "wrote $work/w.pt"
printf '\223NUMPY\001\000v\000' >"$work/x.npy"
expect 3 eval examples/models/mlp.ini -w examples/models/mlp.ini
err "mlp.ini: this is a text, not a weights file"
for command in report fit plan sweep train summary; do
  for name in w.safetensors w.pt; do
    expect 3 $command "$work/$name"
    err "$name: this is a weights file; "
    err "with --weights"
  done
  expect 3 $command "$work/x.npy"
  err "x.npy: these are NumPy arrays; a model names them in [Dataset]"
done
expect 0 report examples/models/mlp.ini --json --no-curve
out '"kind":"model"'
out '"kinds":{"x":"data"'
expect 4 report examples/models/mlp.ini --budget 1KiB -o "$work/small.html"
err "the smallest plan that was found takes"

# The passes have borders, and the memory of keeping everything lies behind that of the plan. Of blocks too, the least
# budget is the curve's.
expect 0 report examples/models/gpt.ini --json
out '"phases":[["forward",0],["loss",45],["backward",46]]'
out '"keep_all":{"step":[0,1,2'
least=$(grep -o '"points":\[\[[0-9]*' "$work/out" | grep -o '[0-9]*$')
out "\"min_budget_bytes\":$least,"
expect 0 report examples/models/gpt.ini --strategy none --json --no-curve
if grep -q '"keep_all":' "$work/out"; then complain "keeping everything has an outline of itself"; fi

# A graph: with everything kept, within a budget, and from the file of its plan.
graph=examples/unet_graph.json
expect 0 report $graph --json --no-curve
out '"kind":"graph"' && out '"strategy":"none"' && out '"may_run_again":31' && out '"all given tensors"'
expect 0 report $graph --budget 8MiB --json
out '"phases":[["forward",0],["backward",' && out '"keep_all":{"step":['
out '"budget_bytes":8388608' && out '"recompute"' && out '"curve":{' && out '"links":[[0,1,1048576,"down0.conv1"]'
expect 0 plan $graph --budget 8MiB -o "$work/unet_plan.json"
expect 0 report "$work/unet_plan.json" --profile $graph -o "$work/unet.html"
expect 0 report $graph "$work/unet_plan.json" --json
out '"strategy":"file"'
expect 2 report "$work/unet_plan.json" -o "$work/unet.html"
err "--profile GRAPH names the graph"
expect 4 report $graph --budget 1KiB -o "$work/small.html"
sed 's/"schedule": \[0, /"schedule": [/' "$work/unet_plan.json" >"$work/broken_plan.json"
expect 7 report "$work/broken_plan.json" --profile $graph -o "$work/x.html"
if has_python; then # too many to draw, and too long to show every position
  python3 - >"$work/long_graph.json" <<'END'
n = 12000
tensors = ",".join('{"bytes": %d}' % (64 + i % 3) for i in range(2 * n))
actions = ['{"reads": [%s], "writes": [%d], "cost": 1}' % (i - 1 if i else "", i) for i in range(n)]
actions += ['{"once": true, "reads": [%d%s], "writes": [%d], "cost": 2}' % (n - 1 - i, ", %d" % (n + i - 1) if i else "", n + i)
            for i in range(n)]
print('{"format": "remat-graph", "version": 1, "tensors": [%s], "actions": [%s]}' % (tensors, ",".join(actions)))
END
  expect 0 report "$work/long_graph.json" --no-curve --json
  out '"columns":{"step":[' && out '"steps":24000'
  python3 -c "
import json, sys
file = json.load(open(sys.argv[1]))['files'][0]
assert 'nodes' not in file['graph'] and len(file['memory']['columns']['step']) == 4096
peak = max(sum(file['memory']['columns'][k][i] for k in 'xsyw') for i in range(4096))
assert peak == file['figures']['peak_bytes'], (peak, file['figures']['peak_bytes'])" "$work/out" || complain "the columns of a long graph are wrong"
fi

# The log of a run, also of one that was killed in the middle of a line.
cat >"$work/run.log" <<'END'
{"format": "remat-run", "version": 1, "model": "gpt", "strategy": "optimal", "kernels": "avx2", "first_step": 0, "total_steps": 3, "layers": 10, "recomputed_layers": 4, "budget_bytes": 6000, "min_budget_bytes": 4000, "total_bytes": 5000, "weight_bytes": 1000, "optimizer_bytes": 2000, "gradient_bytes": 1000, "scratch_bytes": 100, "arena_bytes": 900, "peak_bytes": 896, "keep_all_arena_bytes": 1900, "predicted_step_seconds": 0.2}
{"step": 1, "epoch": 0, "loss": 4.5, "rate": 0.0001, "seconds": 0.183}
{"step": 2, "epoch": 0, "loss": null, "rate": 0.0002, "seconds": 0.171}
{"step": 2, "validation_loss": 4.25, "accuracy": 0.5, "samples": 64}
{"step": 3, "epoch": 0, "loss": 4, "rate": 0.0002, "seconds": 0.171}
{"end": true, "steps": 3, "stopped": false, "stopped_early": false, "last_loss": 4, "median_step_seconds": 0.25, "peak_resident_bytes": 90000, "allocated_bytes": 5000}
END
expect 0 report "$work/run.log" --json
out '"value":[4.5,null,4]'
out '"predicted":5000,"measured":5000'
out '"keep_all_bytes":6000'
out '"predicted":200000000,"measured":250000000'
out '"peak_bytes":896,"step_ns":250000000'
out '"accuracy":{"series":[{"name":"validation","step":[2],"value":[0.5]}]}'
out '"rate":{"series":[{"name":"training","step":[1,2,3],"value":[0.0001,0.0002,0.0002]}]}'
if grep -q '"norm"\|"throughput"' "$work/out"; then complain "a norm or a throughput that the log does not have"; fi
sed 's/"layers": 10/"batch": 6, "accumulate": 2, "layers": 10/; s/"seconds": 0.183/"seconds": 0.5, "norm": 1.5/' "$work/run.log" >"$work/full.log"
expect 0 report "$work/full.log" --json
out '"norm":{"series":[{"name":"training","step":[1,2,3],"value":[1.5,null,null]}]}'
out '"throughput":{"series":[{"name":"training","step":[1,2,3],"value":[24,'
# Without a measured profile the log predicts no time, and models say that theirs are modelled.
sed 's/, "predicted_step_seconds": 0.2//; s/"accuracy": 0.5, //' "$work/run.log" >"$work/plain.log"
expect 0 report "$work/plain.log" --json
out '"predicted":null,"measured":250000000'
if grep -q '"accuracy"' "$work/out"; then complain "an accuracy that the log does not have"; fi
expect 0 report examples/models/mlp.ini --json --no-curve
out '"cost_measured":false'
expect 0 profile examples/models/mlp.ini -o "$work/mlp.profile.json"
expect 0 report examples/models/mlp.ini --profile "$work/mlp.profile.json" --json --no-curve
out '"cost_measured":true'
head -c 700 "$work/run.log" >"$work/cut.log"
expect 0 report "$work/cut.log" -o "$work/cut.html"
expect_stdin 2 "$work/run.log" report - --json

# The same files give the same page.
expect 0 report "$work/plan.json" --profile examples/transformer.json -o "$work/again.html"
cmp "$work/page.html" "$work/again.html" || complain "the page is not the same twice"
finish
