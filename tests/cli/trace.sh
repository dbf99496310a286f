#!/bin/sh
# remat train --trace: slices for every action, recomputed ones marked, memory as a counter whose peak is the planned one.
. tests/cli/support/expect.sh

expect 0 train examples/models/gpt.ini --steps 2 --strategy full --trace "$work/trace.json" --quiet --json
peak=$(grep -o '"peak_bytes": [0-9]*' "$work/out" | head -1 | grep -o '[0-9]*')
trace=$work/trace.json
if [ "$(head -c 1 "$trace")" != "{" ] || [ "$(tail -1 "$trace")" != "]}" ]; then complain "the trace is not whole"; fi
for what in forward recompute weight_gradient input_gradient apply; do
  grep -q "\"ph\": \"X\".*\"cat\": \"$what\"" "$trace" || complain "no slice of $what"
done
[ "$(grep -c '"ph": "X"' "$trace")" = "$(grep -c '"ph": "C"' "$trace")" ] || complain "not every slice has its memory"
highest=$(sed -n 's/.*"ph": "C".*"bytes": \([0-9]*\).*/\1/p' "$trace" | sort -n | tail -1)
[ "$highest" = "$peak" ] || complain "the counter's peak is $highest, the plan's $peak"
# Slices follow each other: none begins before the one before it has ended.
sed -n 's/.*"ph": "X".*"ts": \([0-9.]*\), "dur": \([0-9.]*\).*/\1 \2/p' "$trace" |
  awk '$1 + 0.0005 < last { exit 1 } { last = $1 + $2 }' || complain "slices overlap"
# Every line but the first and the last is an object: commas between them, none behind the last.
sed '1d;$d' "$trace" | awk 'NR > 1 && before !~ /,$/ { exit 1 } { before = $0 } END { if (before ~ /,$/) exit 1 }' || complain "commas are wrong"
# The trace changes nothing.
expect 0 train examples/models/mlp.ini --steps 3 --save "$work/a.safetensors" --quiet
expect 0 train examples/models/mlp.ini --steps 3 --save "$work/b.safetensors" --quiet --trace "$trace"
cmp "$work/a.safetensors" "$work/b.safetensors" || complain "a traced training has other weights"
expect 6 train examples/models/mlp.ini --steps 1 --trace "$work/no/such/folder/trace.json" --quiet
[ "$(wc -l <"$work/err")" = 1 ] || complain "not one message: $(cat "$work/err")"
err "no/such/folder/trace.json: cannot be written"
expect 0 train examples/models/mlp.ini --steps 2 --trace /dev/full --quiet # a trace is no reason to stop
[ "$(wc -l <"$work/err")" = 1 ] || complain "not one message: $(cat "$work/err")"
err "/dev/full: writing failed"
finish
