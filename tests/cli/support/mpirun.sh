# shellcheck shell=sh
# Starting ranks on this machine. Sourced after expect.sh.
# shellcheck disable=SC2154 # work and REMAT come from there

# has_mpirun: whether ranks can be started here, and why not.
has_mpirun() {
  command -v mpirun >/dev/null 2>&1 || { echo "[  SKIPPED ] mpirun is not installed"; return 1; }
  mpirun --version 2>/dev/null | grep -q "Open MPI" || { echo "[  SKIPPED ] mpirun is not Open MPI's"; return 1; }
}

# ranks N PROGRAM ARGUMENT...: N ranks, more than there are cores if need be, ended after ten minutes. The libraries of MPI keep
# memory until the process ends.
ranks() {
  ranks_count=$1
  shift
  ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" OMPI_MCA_btl_vader_single_copy_mechanism=none \
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
    timeout -k 5 600 mpirun --allow-run-as-root --oversubscribe -x ASAN_OPTIONS -np "$ranks_count" "$@" </dev/null
}

# expect_ranks CODE N ARGUMENT...: as expect, with N ranks of remat.
expect_ranks() {
  wanted=$1 count=$2 code=0
  shift 2
  ranks "$count" "$REMAT" "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || complain "$count ranks, remat $*: exit code $code, wanted $wanted; it said: $(head -c 800 "$work/err")"
}

# write_net: a small model in $work/net.ini with what could depend on who computes: batch normalization, dropout, clipping,
# validation. Its step has 12 micro-batches.
write_net() {
  cat >"$work/net.ini" <<'END'
[Model]
batch_size = 2
accumulate = 12
epochs = 1
clip_norm = 1
[Optimizer]
type = adamw
[Dataset]
type = random
samples = 120
validation_split = 0.2
validation_every = 1
[in : input]
input_shape = 3:6:6
[conv : conv2d]
filters = 8
kernel_size = 3
[norm : batch_normalization]
[act : activation]
activation = relu
[drop : dropout]
rate = 0.3
[flat : flatten]
[fc : fully_connected]
unit = 5
[loss : cross_entropy]
END
}
