#!/bin/sh
# `remat bench`: times of layers and phases beside the machine's limits.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh

# numbers KEY: the values of "KEY" in the last run's JSON, one a line. sum KEY: their sum.
numbers() { grep -o "\"$1\": [0-9.e+-]*" "$work/out" | sed 's/.*: //'; }
sum() { numbers "$1" | awk '{ sum += $1 } END { printf "%.9g\n", sum }'; }
# phase NAME KEY: of one phase.
phase() { grep "{\"name\": \"$1\", \"seconds\"" "$work/out" | grep -o "\"$2\": [0-9.e+-]*" | sed 's/.*: //'; }
# holds A OPERATOR B: numbers.
holds() { awk -v a="$1" -v b="$3" "BEGIN { exit !(a + 0 $2 b + 0) }" || complain "not $1 $2 $3: $4"; }

expect 0 bench examples/models/mlp.ini --steps 2 -j 1
out "s a step  "
out "fc1"
out "GFLOP/s in multiply-adds on registers"
out "with 1 thread ("
out "limits with 1 thread ("
out "layer by layer"
grep -q '^  % of the peak ' "$work/out" || complain "no rates of the phases"
grep -q '83.08 of them in matrix products$' "$work/out" || complain "the matrix products of the MLP: $(cat "$work/out")"
# The second fully_connected: 2 x 32 x 512 x 256 in each of three phases, and bytes that the shapes give.
expect 0 bench examples/models/mlp.ini --steps 2 -j 1 --json
json_object "$work/out"
out '"format": "remat-bench", "version": 1,'
grep '"name": "fc2"' "$work/out" >"$work/fc2"
for phase in forward weight_gradient input_gradient; do
  grep -q "\"${phase}_flops\": 8388608, \"${phase}_gemm_flops\": 8388608," "$work/fc2" || complain "fc2 $phase: $(cat "$work/fc2")"
done
grep -q '"name": "fc2", "flops": 25165824, "bytes": 1869824,' "$work/fc2" || complain "fc2: $(cat "$work/fc2")"
grep -q '"forward_bytes": 623616,.*"weight_gradient_bytes": 623616,.*"input_gradient_bytes": 622592,.*"apply_bytes": 3677184}' "$work/fc2" ||
  complain "bytes of fc2: $(cat "$work/fc2")"

# One step: what the phases take, the samples and no more. Phases are the sums of layers.
expect 0 bench examples/models/mlp.ini --steps 1 -j 1 --strategy full --json
json_object "$work/out"
seconds=$(for name in forward recompute weight_gradient input_gradient apply; do phase $name seconds; done | awk '{ sum += $1 } END { print sum }')
holds "$seconds" ">" 0 "the phases take no time"
holds "$seconds" "<=" "$(awk -v a="$(numbers step_seconds)" -v b="$(numbers data_seconds)" 'BEGIN { printf "%.9f", a - b + 1e-8 }')" \
  "the phases take longer than the step"
for name in forward recompute weight_gradient input_gradient apply; do
  for key in flops gemm_flops bytes; do
    holds "$(phase $name $key)" "==" "$(sum ${name}_$key)" "$name $key is not the sum of the layers"
  done
  awk -v a="$(phase $name seconds)" -v b="$(sum ${name}_seconds)" 'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }' ||
    complain "the seconds of $name are not the sum of the layers"
  holds "$(phase $name seconds)" ">" 0 "$name takes no time"
  holds "$(phase $name bytes)" ">" 0 "$name has no bytes"
done
holds "$(sum flops)" ">=" "$(phase forward flops)" "flops of layers"

# The optimizer's step is seen with micro-batches too; clearing and the norm have a row of their own.
sed 's/^batch_size.*/&\naccumulate = 4\nclip_norm = 1/' examples/models/mlp.ini >"$work/accumulate.ini"
expect 0 bench "$work/accumulate.ini" --steps 2 -j 1 --json
holds "$(phase apply seconds)" ">" 0 "no time of the optimizer"
grep -q '"name": "fc1".*"apply_flops": 6832640, "apply_gemm_flops": 0, "apply_bytes": 11253760}' "$work/out" ||
  complain "the optimizer on fc1: $(grep '"fc1"' "$work/out")"
out '"name": "(all gradients)"'
expect 0 bench "$work/accumulate.ini" --steps 2 -j 1
out "(all gradients)"

# What is recomputed is said apart; the matrix products of the model stay the same.
expect 0 bench examples/models/mlp.ini --steps 1 -j 1 --strategy full
grep -q '83.08 of them in matrix products, and 36.20 more for recomputation$' "$work/out" ||
  complain "recomputed work: $(grep products "$work/out")"

# The run's kernels are not those of the limits.
expect 0 bench examples/models/spirals.ini --steps 1 -j 1 --kernels reference --json
out '"threads": 1, "kernels": "reference",'
! grep -q '"peak_kernels": "reference"' "$work/out" || complain "the limits are those of the reference kernels"
# Nor are threads, where the system allows no more than one. A library that refuses them plays the system; sanitizers have
# to be loaded first.
expect 0 bench examples/models/spirals.ini --steps 1 -j 2
if [ "$REMAT_SANITIZE" != ON ]; then
  echo 'int pthread_create(void) { return 11; }' >"$work/refuse.c"
  ${CC:-cc} -w -shared -fPIC "$work/refuse.c" -o "$work/refuse.so" || complain "the library does not compile"
  LD_PRELOAD="$work/refuse.so" "$REMAT" bench examples/models/spirals.ini --steps 1 -j 2 >"$work/out" 2>"$work/err" ||
    complain "it fails where threads are refused: $(cat "$work/err")"
  out "with 2 threads ("
  out "limits with 1 thread ("
fi
# Small steps are not rounded away.
grep -q '^[1-9][0-9.]* [um]s a step (median)' "$work/out" || complain "no digits: $(cat "$work/out")"
grep -q '^308.9 kFLOP a step, 236.5 of them' "$work/out" || complain "no digits: $(grep FLOP "$work/out")"

expect 2 bench examples/models/mlp.ini --steps 0
expect 2 bench examples/models/mlp.ini --steps 99999999999999999
err "--steps takes a number from 1 to 1000000, not 99999999999999999"
expect 2 bench
expect 6 bench nowhere.ini
expect 4 bench examples/models/mlp.ini --budget 1MiB
finish
