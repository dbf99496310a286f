#!/bin/sh
# Accessibility of the pages by axe-core, which npm brings: `make check-access`, not part of `make check`.
. tests/cli/support/expect.sh
. tests/browser/support/browser.sh
[ -n "${AXE:-}" ] || { echo "AXE does not name axe.min.js: skipped"; exit 77; }

expect 0 plan examples/transformer.json --budget 6KiB -o "$work/plan.json"
expect 0 report "$work/plan.json" --profile examples/transformer.json -o "$work/one.html"
expect 0 report examples/transformer.json "$work/plan.json" -o "$work/two.html"
cat >"$work/run.log" <<'END'
{"format": "remat-run", "version": 1, "model": "gpt", "layers": 10, "recomputed_layers": 4, "total_bytes": 5000, "weight_bytes": 3000, "arena_bytes": 2000, "keep_all_arena_bytes": 4000}
{"step": 1, "epoch": 0, "loss": 4.5}
{"step": 2, "epoch": 0, "loss": 4.25}
{"end": true, "steps": 2, "median_step_seconds": 0.5, "peak_resident_bytes": 9000, "allocated_bytes": 5000}
END
expect 0 report "$work/run.log" -o "$work/run.html"
expect 0 report examples/unet_graph.json --budget 8MiB -o "$work/graph.html"
expect 0 report examples/models/gpt.ini --budget 16MiB "$work/run.log" -o "$work/model.html"
browser_start
node -e 'const script = require("fs").readFileSync(process.argv[1], "utf8") + "; window.axe = window.axe || axe;";
  console.log(JSON.stringify({ args: [], script }))' "$AXE" >"$work/axe.json"
for page in one two run model graph; do
  for theme in light dark; do
    open_page "$work/$page.html"
    [ $theme = light ] || js 'document.getElementById("theme").click()' >/dev/null
    js 'for (const details of document.querySelectorAll("details")) details.open = true' >/dev/null
    send execute/sync @"$work/axe.json" >"$work/injected"
    grep -q '"value":null' "$work/injected" || complain "axe-core was not taken: $(head -c 300 "$work/injected")"
    found=$(send execute/async '{"args":[],"script":"const done = arguments[0]; axe.run().then((r) => done(r.passes.length + \" rules passed\" + r.violations.map((v) => \"; \" + v.id + \": \" + v.help + \" at \" + v.nodes.map((n) => n.target + \" \" + n.failureSummary).slice(0, 3).join(\" | \")).join(\"\")))"}')
    echo "$page, $theme: $found"
    case $found in *' rules passed"}') ;; *) complain "$page in $theme colours has findings" ;; esac
  done
done
finish
