#!/bin/sh
# remat train --shard: ranks that share state, gradients or weights train with the same bits as one process, in less memory.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
same() { cmp -s "$work/$1" "$work/$2" || complain "$3: $1 and $2 differ"; }
number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/out"; }
write_net
wide='[a : fully_connected]\nunit = 160\n[b : fully_connected]\nunit = 160\n[c : fully_connected]\nunit = 160\n'
sed "s/^\\[fc : /${wide}[fc : /" "$work/net.ini" >"$work/wide.ini"

expect 0 train "$work/wide.ini" --steps 3 --save "$work/one.safetensors" --log "$work/one.log" --json -q -j 1
all=$(number total_bytes)
last=$all
grep -o '"\(loss\|validation_loss\)": [^,}]*' "$work/one.log" >"$work/one.losses"
for stage in optimizer gradients weights; do
  expect_ranks 0 4 train "$work/wide.ini" --shard $stage --steps 3 --save "$work/some.safetensors" --log "$work/some.log" \
    --json -q -j 1
  same one.safetensors some.safetensors "4 ranks, $stage"
  grep -o '"\(loss\|validation_loss\)": [^,}]*' "$work/some.log" >"$work/some.losses"
  same one.losses some.losses "4 ranks, $stage"
  [ "$(number allocated_bytes)" = "$(number total_bytes)" ] || complain "$stage: $(cat "$work/out")"
  [ "$(number total_bytes)" -lt "$last" ] || complain "$stage takes $(number total_bytes) bytes, before it were $last"
  last=$(number total_bytes)
done
[ $((all - last)) -gt $((all / 4)) ] || complain "shards save only $((all - last)) of $all bytes"

# Moments in few bits and weights without master copies are rounded at random, with other optimizers, and 3 ranks.
for set in "gradients --set optimizer.state=int8" \
  "weights --set model.precision=bf16 --set model.master=false --set optimizer.type=lion"; do
  # shellcheck disable=SC2086 # several arguments
  expect 0 train "$work/wide.ini" ${set#* } --steps 2 --save "$work/rounded.safetensors" -q -j 1
  # shellcheck disable=SC2086
  expect_ranks 0 3 train "$work/wide.ini" --shard $set --steps 2 --save "$work/some.safetensors" -q -j 1
  same rounded.safetensors some.safetensors "--shard $set"
done

# Saved with one stage, resumed with another number of ranks and another stage, then by one process.
expect_ranks 0 3 train "$work/wide.ini" --shard weights --steps 1 --save "$work/half.safetensors" -q
expect_ranks 0 2 train "$work/wide.ini" --shard optimizer --steps 2 --resume "$work/half.safetensors" \
  --save "$work/half.safetensors" -q --trace "$work/trace.json"
grep -q gather "$work/trace.json" || complain "the trace has no transfers"
cp "$work/half.safetensors" "$work/again.safetensors"
expect 0 train "$work/wide.ini" --steps 3 --resume "$work/half.safetensors" --save "$work/half.safetensors" -q
same one.safetensors half.safetensors "resumed by one process"
expect_ranks 0 4 train "$work/wide.ini" --shard weights --steps 3 --resume "$work/again.safetensors" \
  --save "$work/again.safetensors" -q
same one.safetensors again.safetensors "resumed with shared weights"

# Weights of the next layers are gathered while a layer computes: all large gathers of a step but the first begin before an action ends
# and are over after it. The memory is that of a plan without, and the bits are the same.
wider='[a : fully_connected]\nunit = 400\n[b : fully_connected]\nunit = 400\n[c : fully_connected]\nunit = 400\n[d : fully_connected]\nunit = 400\n'
sed "s/^\\[fc : /${wider}[fc : /; s/^accumulate = 12/accumulate = 2/; /^validation/d" "$work/net.ini" >"$work/wider.ini"
expect 0 train "$work/wider.ini" --steps 1 --save "$work/one.safetensors" -q -j 1
expect_ranks 0 2 train "$work/wider.ini" --shard weights --steps 1 --trace "$work/trace.json" --json -q -j 1 \
  --save "$work/some.safetensors"
same one.safetensors some.safetensors "gathers that begin early"
[ "$(number allocated_bytes)" = "$(number total_bytes)" ] || complain "gathers that begin early: $(cat "$work/out")"
if has_python; then
  python3 - "$work/trace.json" <<'END' || complain "weights are not gathered while layers compute"
import json, sys
events = json.load(open(sys.argv[1]))
events = events["traceEvents"] if isinstance(events, dict) else events
ends = [e["ts"] + e["dur"] for e in events if e["ph"] == "X" and e.get("cat") in ("forward", "input_gradient", "weight_gradient")]
begun = {e["id"]: e["ts"] for e in events if e["ph"] == "b" and e.get("cat") == "gather" and e["args"]["bytes"] > 1 << 17}
ended = {e["id"]: e["ts"] for e in events if e["ph"] == "e" and e["id"] in begun}
early = [i for i in begun if any(begun[i] < end < ended[i] for end in ends)]
print(f"{len(begun)} large gathers, {len(early)} beside computing")
sys.exit(not (len(begun) >= 8 and len(early) >= len(begun) - 1))
END
fi

expect 2 train "$work/net.ini" --shard everything
err "none, optimizer, gradients or weights"
finish
