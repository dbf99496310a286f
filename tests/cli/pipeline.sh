#!/bin/sh
# remat train --pipeline: the same bits as one process with any cut, alone and in rows; saving and resuming; what is refused.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
same() { cmp -s "$work/$1" "$work/$2" || complain "$3: $1 and $2 differ"; }
losses() { grep -o '"\(loss\|validation_loss\)": [^,}]*' "$1"; }
bytes() { grep -o "\"$1\": [0-9]*" "$work/out" | sed 's/.*: //'; }
write_net

expect 0 train "$work/net.ini" --steps 4 --save "$work/one.safetensors" --log "$work/one.log" -q -j 1
losses "$work/one.log" >"$work/one.losses"
for n in "2 2" "4 4" "4 2"; do
  # shellcheck disable=SC2086 # ranks and stages
  set -- $n
  expect_ranks 0 "$1" train "$work/net.ini" --steps 4 --pipeline "$2" --save "$work/some.safetensors" \
    --log "$work/some.log" --json -j 1
  err "$1 ranks in $2 stages"
  err "stage $(($2 - 1)): "
  [ "$(grep -c 'step 1/4 ' "$work/err")" = 1 ] || complain "$n: progress is not printed once"
  same one.safetensors some.safetensors "$n"
  losses "$work/some.log" >"$work/some.losses"
  same one.losses some.losses "$n"
  [ "$(bytes allocated_bytes)" = "$(bytes total_bytes)" ] || complain "$n: the memory is not as planned"
done

# Fewer micro-batches than stages idle, with the same bits, and so does a stage that learns nothing; types that round at random;
# no clipping.
set -- --set model.accumulate=1 --set conv.trainable=false --steps 2 -q -j 1
expect_ranks 0 3 train "$work/net.ini" "$@" --pipeline 3 --save "$work/some.safetensors"
err "do not fill a pipeline of 3 stages"
expect 0 train "$work/net.ini" "$@" --save "$work/alone.safetensors"
same alone.safetensors some.safetensors "one micro-batch"
set -- --set optimizer.state=int8 --set model.precision=bf16 --set model.master=false --set model.clip_norm=0 \
  --set model.accumulate=3 --steps 2 -q -j 1
expect 0 train "$work/net.ini" "$@" --save "$work/alone.safetensors"
expect_ranks 0 4 train "$work/net.ini" "$@" --pipeline 4 --save "$work/some.safetensors"
same alone.safetensors some.safetensors "rounded at random"

# Saved by two stages, resumed by four, then by rows without stages; transfers in the trace.
expect_ranks 0 2 train "$work/net.ini" --pipeline 2 --steps 2 --save "$work/half.safetensors" -q -j 1
expect_ranks 0 4 train "$work/net.ini" --pipeline 4 --steps 3 --resume "$work/half.safetensors" --save "$work/half.safetensors" \
  --trace "$work/trace.json" -q -j 1
expect_ranks 0 2 train "$work/net.ini" --steps 4 --resume "$work/half.safetensors" --save "$work/half.safetensors" -q -j 1
same one.safetensors half.safetensors "resumed"
grep -q '"ph": "b".*"cat": "send"' "$work/trace.json" || complain "the trace has no transfers"
if has_python; then python3 -m json.tool "$work/trace.json" >/dev/null || complain "the trace is no JSON"; fi

# Two rows share the state of the optimizer, in any type; other numbers of rows and stages go on.
expect_ranks 0 4 train "$work/net.ini" --pipeline 2 --shard optimizer --steps 2 --save "$work/half.safetensors" -q -j 1
expect_ranks 0 6 train "$work/net.ini" --pipeline 2 --shard optimizer --steps 3 --resume "$work/half.safetensors" \
  --save "$work/half.safetensors" -q -j 1
expect_ranks 0 2 train "$work/net.ini" --shard weights --steps 4 --resume "$work/half.safetensors" --save "$work/half.safetensors" \
  -q -j 1
same one.safetensors half.safetensors "rows that share"
set -- --set optimizer.state=int8 --set model.precision=bf16 --set model.master=false --steps 2 -q -j 1
expect 0 train "$work/net.ini" "$@" --save "$work/alone.safetensors"
expect_ranks 0 4 train "$work/net.ini" "$@" --pipeline 2 --shard optimizer --save "$work/some.safetensors"
same alone.safetensors some.safetensors "rows that share moments in 8 bits"
expect_ranks 2 4 train "$work/net.ini" --pipeline 2 --shard gradients --steps 2
err "use --shard optimizer"

# Tokens, a weight in the first and the last stage, a tensor that passes by, and a budget that makes stages recompute.
cat >"$work/text.ini" <<'END'
[Model]
batch_size = 2
accumulate = 4
clip_norm = 1
[Optimizer]
type = adam
[Dataset]
type = random
samples = 16
[tokens : input]
input_shape = 1:1:24
[embedding : embedding]
in_dim = 40
out_dim = 32
END
before=embedding
for i in 1 2 3 4; do
  cat >>"$work/text.ini" <<END
[norm$i : layer_normalization]
input_layers = $before
[up$i : fully_connected]
unit = 128
activation = gelu
[down$i : fully_connected]
unit = 32
[sum$i : addition]
input_layers = down$i, $before
END
  before=sum$i
done
cat >>"$work/text.ini" <<'END'
[far : addition]
input_layers = sum4, embedding
[head : fully_connected]
unit = 40
bias = false
shared_from = embedding
[loss : cross_entropy]
END
expect 0 train "$work/text.ini" --steps 2 --save "$work/one.safetensors" -q -j 1
expect_ranks 0 3 train "$work/text.ini" --pipeline 3 --steps 2 --save "$work/some.safetensors" --json -q -j 1
same one.safetensors some.safetensors "shared weight"
whole=$(bytes total_bytes)
fixed=$((whole - $(bytes arena_bytes)))
budget=$((fixed + (whole - fixed) * 3 / 10))
# stage KEY: a number of the first stage in the last answer of fit
stage() { grep -o "\"$1\": [0-9]*" "$work/out" | sed -n '1s/.*: //p'; }
expect 0 fit "$work/text.ini" --ranks 3 --pipeline 3 --json -j 1
[ "$(stage keep_all_bytes)" = "$whole" ] || complain "fit says $(stage keep_all_bytes) bytes, and a rank takes $whole"
expect 0 fit "$work/text.ini" --ranks 3 --pipeline 3 --budget $budget --network 10GB/s,10us --json -j 1
said=$(stage total_bytes)
out '"transfer_seconds"'
expect_ranks 0 3 train "$work/text.ini" --pipeline 3 --steps 2 --budget $budget --save "$work/some.safetensors" --json -q -j 1
same one.safetensors some.safetensors "budget"
[ "$(bytes allocated_bytes)" = "$said" ] || complain "fit says $said bytes, and a rank takes $(bytes allocated_bytes)"
[ "$(bytes recomputed_layers)" -gt 0 ] || complain "nothing is recomputed within $budget bytes"
[ "$(bytes allocated_bytes)" -le $budget ] || complain "the budget of $budget is not kept"
expect_ranks 4 3 train "$work/text.ini" --pipeline 3 --steps 2 --budget $fixed
err "no cut into 3 stages was found that fits"

expect 4 fit "$work/text.ini" --ranks 3 --pipeline 3 --budget $fixed -j 1
out "no cut into so many stages"
expect 2 fit "$work/text.ini" --ranks 4 --pipeline 3
err "a multiple of its stages"

# Divergence comes to all ranks, and what cannot be is refused once.
expect_ranks 8 2 train "$work/net.ini" --steps 4 --pipeline 2 --set optimizer.learning_rate=1e30 -q -j 1
err "diverged"
expect_ranks 2 3 train "$work/net.ini" --steps 2 --pipeline 2
[ "$(grep -cF "must be a multiple of 2" "$work/err")" = 1 ] || complain "not said once: $(head -c 600 "$work/err")"
expect_ranks 2 8 train "$work/net.ini" --steps 2 --pipeline 8
[ "$(grep -cF "cannot be cut into 8 stages" "$work/err")" = 1 ] || complain "not said once: $(head -c 600 "$work/err")"
expect 2 train "$work/net.ini" --pipeline 2
err "takes as many ranks"
expect 2 train "$work/net.ini" --pipeline 0
err "from 1 on"
finish
