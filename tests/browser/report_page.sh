#!/bin/sh
# The pages of `remat report` in a real browser: charts draw, hover and zoom work, nothing complains, nothing is fetched.
. tests/cli/support/expect.sh
. tests/browser/support/browser.sh
[ "${REMAT_SANITIZE:-}" != ON ] || { echo "the pages are those of the plain build: skipped"; exit 77; }

# A transformer as a profile: $1 blocks of eight layers.
transformer() {
  awk -v blocks="$1" 'BEGIN {
    split("ln1 qkv attn proj ln2 up gelu down", names); split("norm attention attention ffn norm ffn other ffn", types)
    split("8 24 40 4 8 16 16 4", kept); split("4 12 4 4 4 16 16 4", out); split("3 9000 4000 3000 3 12000 10 12000", flops)
    print "index,name,type,activation_bytes,output_bytes,recompute_flops,backward_workspace_bytes"
    for (b = 0; b < blocks; b++) for (i = 1; i <= 8; i++)
      printf "%d,h%d.%s,%s,%d,%d,%d,%d\n", b * 8 + i - 1, b, names[i], types[i], kept[i] * 1048576, out[i] * 1048576, flops[i] * 1000000, 2097152
  }'
}
transformer 24 >"$work/gpt.csv"
transformer 1250 >"$work/long.csv"
expect 0 plan examples/transformer.json --budget 6KiB -o "$work/plan.json"
expect 0 report "$work/plan.json" --profile examples/transformer.json -o "$work/demo.html"
expect 0 plan "$work/gpt.csv" --budget 1GiB -o "$work/gpt.json"
expect 0 report "$work/gpt.json" --profile "$work/gpt.csv" -o "$work/gpt.html"
[ "$(wc -c <"$work/gpt.html")" -lt 1000000 ] || complain "the page of the GPT's plan has $(wc -c <"$work/gpt.html") bytes"
expect 0 plan "$work/gpt.csv" --strategy every-nth:2 -o "$work/other.json"
expect 0 report "$work/gpt.json" "$work/other.json" --profile "$work/gpt.csv" -o "$work/two.html"
expect 0 plan "$work/long.csv" --strategy sqrt -o "$work/long.json"
expect 0 report "$work/long.json" --profile "$work/long.csv" --no-curve -o "$work/long.html"
expect 0 report "$work/plan.json" -o "$work/alone.html"
expect 0 plan examples/unet_graph.json --budget 8MiB -o "$work/unet_plan.json"
expect 0 report examples/unet_graph.json --budget 8MiB -o "$work/unet.html"
expect 0 report examples/unet_graph.json "$work/unet_plan.json" -o "$work/unets.html"

# How many of the page's canvases have several colours, and how many there are.
drawn='const all = [...document.querySelectorAll("canvas")]; const colours = (c) => { const copy = document.createElement("canvas"); copy.width = c.width; copy.height = c.height;
  const to = copy.getContext("2d", { willReadFrequently: true }); to.drawImage(c, 0, 0); const d = to.getImageData(0, 0, c.width, c.height).data, seen = new Set();
  for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; }; return all.filter((c) => colours(c) > 3).length + " of " + all.length'
errors='return rematReport.ready + " " + rematReport.errors.join("; ")'

browser_start

# ---- the demo's plan: what is drawn is what the plan says ----
open_page "$work/demo.html"
same "true " "$errors"
same "4 of 4" "$drawn"
same 6144 'const made = rematReport.memories[0]; return made.total[made.peak]'
same 10 'return rematReport.memories[0].peak'
same "transformer-6 – Remat report" 'return document.title'
js 'return document.querySelector("main").innerText' | grep -q "3 of 6 layers are recomputed" || complain "the page does not say what was recomputed"
picture demo

# ---- a graph: it is drawn, with its long links, and the memory is what the plan says ----
open_page "$work/unet.html"
same "true " "$errors"
same "4 of 4" "$drawn"
same "31 34 4" 'const g = rematReport.graphs[0]; return g.nodes + " " + g.links + " " + g.long'
same "31 4" 'return document.querySelectorAll(".graph .node").length + " " + document.querySelectorAll(".graph .long").length'
same true 'const made = rematReport.memories[0]; return made.total[made.peak] <= 8388608 && made.total[made.peak] === made.file.figures.peak_bytes'
js 'return document.querySelector("main").innerText' | grep -q "of 31 actions are recomputed" || complain "the page does not say what was recomputed"
picture unet
open_page "$work/unets.html"
same "true " "$errors"
same 2 'return rematReport.graphs.length'
open_page "$work/demo.html"

# Hover lists who is alive.
at=$(middle_of 'document.querySelectorAll("canvas")[0]')
x=${at%,*} y=${at#*,}
pointer move "$x" "$y" move $((x + 40)) "$y"
same true 'return rematReport.views[0].cursor !== null'
js 'return document.querySelector(".readout").innerText' | grep -q "state of h2.ffn" || complain "hovering lists no tensors"
before=$(js 'return document.querySelector(".readout p").innerText')
pointer move $((x - 300)) "$y"
after=$(js 'return document.querySelector(".readout p").innerText')
[ "$before" != "$after" ] || complain "hovering elsewhere shows the same step: $after"

# Dragging zooms, a double click shows all, buttons and keys do the same.
pointer move $((x - 200)) "$y" down move $((x + 200)) "$y" up
same true 'const v = rematReport.views[0]; return v.max - v.min < 12 && v.max - v.min >= 4'
pointer move "$x" "$y" down up down up
same "0 19" 'const v = rematReport.views[0]; return v.min + " " + v.max'
js 'document.querySelector("button[aria-label=\"Zoom in\"]").click()' >/dev/null
same true 'const v = rematReport.views[0]; return v.max - v.min < 10'
js 'document.querySelector("button[aria-label=\"Show all steps\"]").click(); document.querySelector("input[type=range]").focus(); document.querySelector("button[aria-label=\"Go to the peak\"]").click()' >/dev/null
same 10 'return rematReport.views[0].cursor'
press '\ue014'
same 11 'return rematReport.views[0].cursor'
same true 'return document.activeElement.getAttribute("aria-valuetext").includes("step 11")'

# The arena names what is pointed at.
at=$(middle_of 'document.querySelector("canvas[aria-label^=\"Map of the arena\"]")')
pointer move "${at%,*}" "${at#*,}"
js 'return [...document.querySelectorAll(".readout")].pop().innerText' | grep -q "steps" || complain "the arena names nothing"

# Tables stand beside the pictures; the other theme draws in other colours.
same 19 'const d = document.querySelector("details"); d.open = true; d.dispatchEvent(new Event("toggle")); return d.querySelectorAll("tbody tr").length'
same "dark" 'const was = document.documentElement.dataset.theme; document.getElementById("theme").click(); return was === "light" ? document.documentElement.dataset.theme : "dark"'
picture demo-dark
same "4 of 4" "$drawn"
quiet "the demo"

# ---- the GPT's plan ----
open_page "$work/gpt.html"
same "true " "$errors"
same "4 of 4" "$drawn"
echo "the GPT's plan: first painted after $(js "return Math.ceil(performance.getEntriesByType('paint')[0].startTime)") ms"
picture gpt
quiet "the GPT"

# ---- two plans on one axis ----
open_page "$work/two.html"
same "true " "$errors"
same 2 'return rematReport.charts[0].data.datasets.length'
js 'return document.querySelector("main").innerText' | grep -q "decided differently" || complain "two plans are not compared layer by layer"
at=$(middle_of 'document.querySelectorAll("canvas")[0]')
pointer move "${at%,*}" "${at#*,}"
same 2 'return document.querySelector(".readout").querySelectorAll("li").length'
picture two
quiet "two plans"

# ---- ten thousand layers: how long pointing and zooming take is printed, not judged ----
open_page "$work/long.html"
same "true " "$errors"
pointing=$(js 'const v = rematReport.views[0], t = performance.now(); for (let i = 0; i < 20; i++) v.point(i * 1999); return Math.ceil((performance.now() - t) / 20)')
zooming=$(js 'const v = rematReport.views[0], t = performance.now(); for (let i = 0; i < 10; i++) { v.zoom(0.8); } v.all(); return Math.ceil((performance.now() - t) / 11)')
echo "10,000 layers: $pointing ms to point, $zooming ms to zoom"
same "10000" 'return rematReport.memories[0].file.layers.name.length'
quiet "ten thousand layers"

# ---- a model: its arena action by action ----
expect 0 report examples/models/gpt.ini -o "$work/model.html"
open_page "$work/model.html"
same "true " "$errors"
same "4 of 4" "$drawn"
same true 'const made = rematReport.memories[0]; return made.total[made.peak] === made.file.figures.peak_bytes && made.peak === made.source.peak_step'
at=$(middle_of 'document.querySelector("canvas[aria-label^=\"Map of the arena\"]")')
pointer move "${at%,*}" "${at#*,}"
js 'return [...document.querySelectorAll(".readout")].pop().innerText' | grep -q 'steps\|Empty' || complain "the arena of a model says nothing"
picture model
quiet "a model"

# ---- a model within a budget: modelled times are shares only, layers are counted once, labels do not cover each other ----
expect 0 report examples/models/gpt.ini --budget 16MiB -o "$work/budget.html"
open_page "$work/budget.html"
same "true " "$errors"
js 'return document.querySelector(".cards").innerText + document.querySelector(".lead").innerText' >"$work/words"
grep -q "modelled" "$work/words" || complain "modelled times are not called so"
same false 'return /[0-9] (ns|µs|ms|s)\b/.test(document.querySelector("main").innerText)'
same true 'const n = rematReport.memories[0].file.figures.layers; return document.querySelector("main").innerText.includes(`1–${n} of ${n}`) && document.querySelector(".cards").innerText.includes(`of ${n}`)'
overlaps='const boxes = rematReport.charts[0].labelBoxes; return boxes.length + " " + boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom))'
same "3 false" "$overlaps"
for width in 760 420; do
  send goog/cdp/execute '{"cmd":"Emulation.setDeviceMetricsOverride","params":{"width":'$width',"height":900,"deviceScaleFactor":1,"mobile":false}}' >/dev/null
  open_page "$work/budget.html"
  same "$width 3 false" "const said = (() => { $overlaps })(); return innerWidth + ' ' + said"
  picture "budget-$width"
done
send goog/cdp/execute '{"cmd":"Emulation.clearDeviceMetricsOverride","params":{}}' >/dev/null
same true 'return rematReport.charts[1].scales.y.ticks.every((tick) => /^[+][0-9]+(\.[0-9])? %$/.test(tick.label))'
quiet "a model within a budget"

# ---- two runs: their losses on one axis ----
for run in 1 2; do
  awk -v run=$run 'BEGIN {
    printf "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"gpt\", \"layers\": 10, \"recomputed_layers\": 4, \"total_bytes\": 5000, \"weight_bytes\": 3000, \"arena_bytes\": 2000, \"keep_all_arena_bytes\": 4000}\n"
    for (i = 1; i <= 300; i++) printf "{\"step\": %d, \"epoch\": 0, \"loss\": %f}\n", i, run + 3 / i
    print "{\"step\": 300, \"validation_loss\": 1.5, \"samples\": 8}"
    print "{\"end\": true, \"steps\": 300, \"median_step_seconds\": 0.5, \"peak_resident_bytes\": 9000, \"allocated_bytes\": 5000}" }' >"$work/run$run.log"
done
expect 0 report "$work/run1.log" "$work/run2.log" -o "$work/runs.html"
open_page "$work/runs.html"
same "true " "$errors"
same "1 of 1" "$drawn"
same 4 'return rematReport.charts[0].data.datasets.length'
js 'return document.querySelector("main").innerText' | grep -q "equal" || complain "predicted is not set beside measured"
same 4 'return new Set(rematReport.charts[0].data.datasets.map((set) => set.borderColor)).size'
picture runs
quiet "two runs"

# ---- a model beside a noisy run: figures of both, two colours, a smooth line over the faint one, accuracy ----
awk 'BEGIN {
  srand(1)
  print "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"perceptron\", \"layers\": 8, \"total_bytes\": 5000, \"arena_bytes\": 2048, \"peak_bytes\": 1024}"
  for (i = 1; i <= 400; i++) printf "{\"step\": %d, \"epoch\": 0, \"loss\": %f}\n", i, 2 + rand()
  for (i = 100; i <= 400; i += 100) printf "{\"step\": %d, \"validation_loss\": 2.5, \"accuracy\": 0.75, \"samples\": 8}\n", i
  print "{\"end\": true, \"steps\": 400, \"median_step_seconds\": 0.5, \"peak_resident_bytes\": 9000, \"allocated_bytes\": 5000}" }' >"$work/noisy.log"
expect 0 report examples/models/mlp.ini "$work/noisy.log" -o "$work/mixed.html"
open_page "$work/mixed.html"
same "true " "$errors"
same 3 'return new Set(rematReport.charts[0].data.datasets.map((set) => set.borderColor)).size'
same true 'const [mean, all] = rematReport.charts[0].data.datasets.map((set) => set.data.map((p) => p.y)); const range = (v) => Math.max(...v) - Math.min(...v); return range(mean) < range(all) / 2 && mean.length === all.length'
js 'return document.querySelector("table").innerText' >"$work/words"
for figure in "1 KiB" "2 KiB" "500 ms (measured)" "(modelled)"; do
  grep -qF "$figure" "$work/words" || complain "side by side lacks $figure: $(cat "$work/words")"
done
js 'return document.querySelector("main").innerText' | grep -q "validation ends at 75.0 %" || complain "the accuracy is not plotted"
picture mixed
quiet "a model beside a run"

# ---- a plan without its profile ----
open_page "$work/alone.html"
same "true " "$errors"
js 'return document.querySelector("main").innerText' | grep -q "needs the profile" || complain "the page does not say what is missing"
quiet "a plan alone"
finish
