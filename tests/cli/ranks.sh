#!/bin/sh
# remat train as several ranks: the same bits with any number, resuming with another, and one voice.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
same() { cmp -s "$work/$1" "$work/$2" || complain "$1 and $2 differ"; }
losses() { grep -o '"\(loss\|validation_loss\)": [^,}]*' "$1"; }
write_net

expect 0 train "$work/net.ini" --steps 4 --save "$work/one.safetensors" --log "$work/one.log" --json -q -j 1
grep -o '"total_bytes": [0-9]*' "$work/out" >"$work/one.bytes"
losses "$work/one.log" >"$work/one.losses"
for n in 2 3 4; do
  expect_ranks 0 $n train "$work/net.ini" --steps 4 --save "$work/some.safetensors" --log "$work/some.log" --json -j 1
  err "$n ranks"
  [ "$(grep -c 'step 1/4 ' "$work/err")" = 1 ] || complain "$n ranks: progress is not printed once"
  [ "$(grep -c remat-train "$work/out")" = 1 ] || complain "$n ranks: figures are not printed once"
  same one.safetensors some.safetensors
  losses "$work/some.log" >"$work/some.losses"
  same one.losses some.losses
  grep -o '"total_bytes": [0-9]*' "$work/out" >"$work/some.bytes"
  same one.bytes some.bytes # a rank takes what a process alone takes
done

# Updates that round at random draw the same numbers on all ranks.
for set in "--set optimizer.state=int8" "--set model.precision=bf16 --set model.master=false"; do
  # shellcheck disable=SC2086 # two or four arguments
  expect 0 train "$work/net.ini" $set --steps 3 --save "$work/rounded.safetensors" -q -j 1
  # shellcheck disable=SC2086
  expect_ranks 0 3 train "$work/net.ini" $set --steps 3 --save "$work/some.safetensors" -q -j 1
  same rounded.safetensors some.safetensors
done

# Saved by three, resumed by two, with their transfers in the trace.
expect_ranks 0 3 train "$work/net.ini" --steps 2 --save "$work/half.safetensors" -q
expect_ranks 0 2 train "$work/net.ini" --steps 4 --resume "$work/half.safetensors" --save "$work/half.safetensors" -q \
  --trace "$work/trace.json"
same one.safetensors half.safetensors
grep -q '"ph": "b".*"cat": "send"' "$work/trace.json" || complain "the trace has no transfers"
if has_python; then python3 -m json.tool "$work/trace.json" >/dev/null || complain "the trace is no JSON"; fi

# Gradients leave while the backward pass goes on: the first transfer of a step begins before its last gradients are computed.
wide='[a : fully_connected]\nunit = 1100\n[b : fully_connected]\nunit = 1100\n[c : fully_connected]\nunit = 1100\n'
sed "s/^\\[fc : /${wide}[fc : /; s/^accumulate = 12/accumulate = 2/" "$work/net.ini" >"$work/wide.ini"
expect_ranks 0 2 train "$work/wide.ini" --steps 1 --trace "$work/trace.json" -q -j 1
if has_python; then
  python3 - "$work/trace.json" <<'END' || complain "no gradient is sent before the last is computed"
import json, sys
events = json.load(open(sys.argv[1]))
events = events["traceEvents"] if isinstance(events, dict) else events
large = [e for e in events if e["ph"] == "b" and e.get("cat") == "send" and e["args"]["bytes"] > 1 << 20]  # no statistics
sent = [e["ts"] for e in large]
computed = [e["ts"] for e in events if e["ph"] == "X" and e.get("cat") in ("weight_gradient", "input_gradient")]
sys.exit(not (sent and computed and min(sent) < max(computed)))
END
fi

# The library's own order: nearly the same.
expect_ranks 0 2 train "$work/net.ini" --steps 4 --reduce fast --log "$work/fast.log" -q
losses "$work/fast.log" | sed 's/.*: //' >"$work/a"
sed 's/.*: //' "$work/one.losses" >"$work/b"
paste "$work/a" "$work/b" | awk '{ d = $1 - $2; if (d < -1e-3 || d > 1e-3) exit 1 }' || complain "--reduce fast has other losses"
expect 2 train "$work/net.ini" --reduce sometimes
err "'fixed' or 'fast'"
finish
