#!/bin/sh
# The page says what the terminal says, and what it draws can be seen: counts, units, bounds, lone points, steep curves,
# the passes, what is kept and recomputed, and runs over each other.
. tests/cli/support/expect.sh
. tests/browser/support/browser.sh
[ "${REMAT_SANITIZE:-}" != ON ] || { echo "the pages are those of the plain build: skipped"; exit 77; }
gpt=examples/models/gpt.ini

run_log() { # LOSS: a run of 60 steps with one validation
  awk -v loss="$1" 'BEGIN {
    print "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"gpt\", \"strategy\": \"optimal\", \"layers\": 44, \"recomputed_layers\": 17, \"batch\": 6, \"accumulate\": 2, \"total_bytes\": 5000, \"arena_bytes\": 2000, \"keep_all_arena_bytes\": 4000}"
    for (i = 1; i <= 60; i++) printf "{\"step\": %d, \"epoch\": 0, \"loss\": %f, \"rate\": %g, \"seconds\": %f, \"norm\": %f}\n", i, loss + 3 / i, 0.001 * i, 0.1, 2 + 1 / i
    printf "{\"step\": 60, \"validation_loss\": %f, \"accuracy\": 1, \"samples\": 8}\n", loss
    print "{\"end\": true, \"steps\": 60, \"median_step_seconds\": 0.1, \"peak_resident_bytes\": 9000, \"allocated_bytes\": 5000}" }'
}
run_log 1 >"$work/a.log"
run_log 2 >"$work/b.log"
expect 0 plan $gpt --budget 16MiB -o "$work/plan.json" --profile-out "$work/chain.json"
counted=$(sed -n 's/.*layers kept \([0-9]*\), recomputed \([0-9]*\);.*/\1 \2/p' "$work/out" | awk '{ print $2 " of " $1 + $2 }')
[ -n "$counted" ] || complain "the terminal counts no layers"
more=$(sed -n 's/.*, for \([0-9.]* %\) more time a step.*/\1/p' "$work/out")
total=$(sed -n 's/.*"total_bytes": \([0-9]*\).*/\1/p' "$work/plan.json")
recomputed=$(grep -c '"decision": "recompute"\|"decision": "input only' "$work/plan.json")
pieces=$(grep -c '"decision"' "$work/plan.json")
expect 0 fit $gpt
smallest=$(sed -n '/^from /{ n; s/^ *\([0-9.]* [KMG]iB\) .*/\1/p; }' "$work/out")
expect 0 plan examples/unet_graph.json --budget 8MiB
bound=$(sed -n 's/.*at most \([0-9.]* %\) above the cheapest.*/\1/p' "$work/out")
proven=$(sed -n 's/^smallest .*(\(.*\)), proven.*/\1/p' "$work/out")
awk 'BEGIN { print "index,type,activation_bytes,output_bytes,recompute_flops"; for (i = 0; i < 40; i++) print i ",ffn,4096,1024,1000" }' >"$work/steep.csv"
expect 0 report "$work/plan.json" -o "$work/alone.html"
expect 0 report "$work/plan.json" --profile "$work/chain.json" -o "$work/chain.html"
expect 0 report $gpt -o "$work/blocks.html"
expect 0 report $gpt --budget 16MiB -o "$work/model.html"
expect 0 report $gpt --strategy none --no-curve -o "$work/none.html"
expect 0 report examples/models/mlp.ini -o "$work/mlp.html"
expect 0 report "$work/steep.csv" -o "$work/steep.html"
expect 0 report examples/unet_graph.json --budget 8MiB -o "$work/unet.html"
expect 0 report "$work/a.log" -o "$work/run.html"
expect 0 report "$work/a.log" "$work/b.log" -o "$work/runs.html"
head -2 "$work/a.log" >"$work/one.log"
expect 0 report "$work/one.log" -o "$work/one.html"

card='const card = (name) => { const found = [...document.querySelectorAll(".card")].find((each) => each.querySelector("dt").innerText === name); return found ? [...found.querySelectorAll("dd")].map((each) => each.innerText).join(" | ") : "none"; };'
# What is written on the canvases when the colours change.
written='const said = [], fill = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { said.push(text); return fill.call(this, text, ...rest); };
  document.getElementById("theme").click(); CanvasRenderingContext2D.prototype.fillText = fill;'
ready() { # PAGE
  open_page "$work/$1.html"
  same "true " 'return rematReport.ready + " " + rematReport.errors.join("; ")'
  same false 'return /≤|under 0.1|NaN|undefined|Infinity/.test(document.querySelector("main").innerText)'
}
browser_start

# ---- the counts are the terminal's, with the profile of the chain or without ----
for page in alone chain; do
  ready $page
  same "$counted" "$card return card(\"recomputed\").split(\" | \")[0]"
  same true "return document.querySelector('.lead').innerText.includes('$counted layers are recomputed')"
  same "piece $pieces" 'return document.querySelector("table:has(th button) th").innerText + " " + document.querySelectorAll("table:has(th button) tbody tr").length'
  same "$recomputed" 'const filter = [...document.querySelectorAll("select")].pop(); filter.value = "recompute"; filter.dispatchEvent(new Event("change")); return document.querySelectorAll("table:has(th button) tbody tr").length'
done
ready alone
same "$total bytes" "$card return card('memory for tensors').split(' | ')[1].replace(/,/g, '')"
same "+$more | over keeping everything" "$card return card('time of a step')"
ready chain # the profile names no unit, and the page says so
same true "$card return / units [|]/.test(card('cost'))"

# ---- the smallest budget is the curve's, also where blocks decide ----
ready blocks
same "$smallest true" "$card const file = rematReport.memories[0].file; return card('smallest budget').split(' | ')[0] + ' ' + (file.curve.points[0][0] === file.figures.min_budget_bytes)"

# ---- passes, colours and the outline of keeping everything ----
ready model
same true 'return [..."sdry"].every((key) => rematReport.memories[0].kinds.some((kind) => kind.key === key))'
same true 'const made = rematReport.memories[0], sum = made.kinds.reduce((all, kind) => all + made.sums[kind.key][made.peak], 0); return sum === made.file.figures.peak_bytes'
same true 'const sets = rematReport.charts[0].data.datasets, outline = sets.find((set) => set.outline); return Math.max(...outline.data.map((point) => point.y)) === rematReport.memories[0].file.figures.base_peak_bytes'
same true "$written return ['forward', 'loss', 'backward', '4 h0.attn.qkv', '44 head'].every((each) => said.includes(each)) && rematReport.memories[0].source.tensors.name.some((each) => said.includes(each)) && said.some((each) => each.startsWith('knee: ')) && said.some((each) => each.startsWith('this plan: '))"
same true 'const details = document.querySelector("details"); details.open = true; details.dispatchEvent(new Event("toggle")); return details.querySelectorAll("tbody tr").length === rematReport.memories[0].steps'
ready none
same false 'return rematReport.memories[0].kinds.some((kind) => "dr".includes(kind.key)) || rematReport.charts[0].data.datasets.some((set) => set.outline)'

# ---- a plan that is alone on the curve is whole and in its colour ----
ready mlp
same true 'const chart = rematReport.charts[1], point = chart.getDatasetMeta(0).data[0], area = chart.chartArea; return chart.data.datasets[0].data.length === 1 && point.y + point.options.radius < area.bottom && point.x - point.options.radius > area.left'

# ---- the steep end does not flatten the rest, and can be shown ----
ready steep
same true 'const chart = rematReport.charts[1], most = Math.max(...chart.data.datasets[0].data.map((point) => point.y)); return chart.cut && most > 2 * chart.scales.y.max'
same true "$written return said.some((each) => each.startsWith('above: '))"
same true 'const button = [...document.querySelectorAll("button")].find((each) => each.innerText === "Show the steep end"); button.click(); const chart = rematReport.charts[1]; return chart.scales.y.max > Math.max(...chart.data.datasets[0].data.map((point) => point.y)) && button.innerText !== "Show the steep end"'

# ---- a graph: units, the bound, the passes ----
ready unet
same true "$card return /^[0-9.]+ ms [|]/.test(card('cost'))"
same "$bound" "$card return card('above the cheapest').split(' | ')[0]"
same "$proven | proven: no plan takes less" "$card return card('smallest budget')"
same true "$written return ['forward', 'backward', '0 down0.conv1'].every((each) => said.includes(each))"
same true 'return rematReport.memories[0].kinds.some((kind) => kind.key === "r") && rematReport.charts[0].data.datasets.some((set) => set.outline)'

# ---- runs: everything that a log has is drawn, a validation that is alone too, and two runs lie over each other ----
ready run
same "Loss,Accuracy,Throughput,Learning rate,Norm of the gradient" 'return [...document.querySelectorAll("h3")].map((each) => each.innerText).filter((each) => rematReport && !/Predicted|memory/.test(each)).join()'
same 120 'return rematReport.charts[2].data.datasets[0].data[0].y'
same true 'const chart = rematReport.charts[1], point = chart.getDatasetMeta(0).data[0]; return point.options.backgroundColor === getComputedStyle(document.documentElement).getPropertyValue("--held-0").trim() && point.options.radius >= 5 && chart.data.datasets[0].clip > 0'
ready one
js 'return document.querySelector(".lead").innerText' | grep -q "^One step, with a loss of 4.00" || complain "a run of one step is not called so"
same true 'return rematReport.charts.every((chart) => { const point = chart.getDatasetMeta(0).data[0], area = chart.chartArea; return point.x > area.left + 9 && point.x < area.right - 9 && point.options.radius >= 5; })'
ready runs
same "H2 P lead" 'const [head, lead] = document.querySelector("section").children; return head.tagName + " " + lead.tagName + " " + lead.className'
js 'return document.querySelector(".lead").innerText' | grep -q "The training loss ends at 1.05 in a.log and 2.05 in b.log." || complain "the lead does not compare the losses"
same "a.log b.log" 'return rematReport.charts.map((chart) => new Set(chart.data.datasets.map((set) => set.label.split(":")[0]))).every((labels) => labels.size === 2) ? "a.log b.log" : "not all"'
quiet "runs"

# ---- a narrow window: tables scroll inside their boxes, and the page is no wider than the window ----
send goog/cdp/execute '{"cmd":"Emulation.setDeviceMetricsOverride","params":{"width":400,"height":900,"deviceScaleFactor":1,"mobile":false}}' >/dev/null
for page in model unet runs chain; do
  ready $page
  same true 'for (const each of document.querySelectorAll("details")) { each.open = true; each.dispatchEvent(new Event("toggle")); } return document.documentElement.scrollWidth <= innerWidth'
  same "" 'return [...document.querySelectorAll("table")].filter((table) => { const box = table.parentElement; return !box.matches(".scroll[tabindex]") || getComputedStyle(box).overflowX !== "auto" || table.offsetWidth > box.scrollWidth; }).map((table) => table.innerText.slice(0, 40)).join()'
done
finish
