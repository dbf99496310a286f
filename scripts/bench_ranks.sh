#!/bin/sh
# What ranks cost: one process with two threads against two ranks with one thread each, which add gradients in the fixed order or
# as MPI does. bench_ranks.sh PROGRAM MODEL.ini [STEPS [MICRO-BATCHES...]]
# Each row: milliseconds of a step (the median), and seconds of the processors for the whole run.
set -eu
remat=$1 model=$2 steps=${3:-8}
shift 2
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- 2 8
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

spent() { awk '{ print $16 + $17 }' /proc/$$/stat; } # of the children, in hundredths of a second
row() { # MICRO-BATCHES NAME RANKS OPTIONS...
  micro=$1 name=$2 count=$3 before=$(spent)
  shift 3
  mpirun --oversubscribe -np "$count" "$remat" train "$model" --set model.accumulate="$micro" --steps "$steps" --json -q "$@" \
    >"$out" 2>/dev/null </dev/null
  sed -n 's/.*"step_seconds": \([0-9.e-]*\).*/\1/p' "$out" |
    awk -v micro="$micro" -v name="$name" -v ticks="$(($(spent) - before))" \
      '{ printf "%-14s %-24s %9.1f ms %9.1f s\n", micro, name, 1000 * $1, ticks / 100 }'
}
echo "micro-batches  who                           step  processors"
for number in "$@"; do
  row "$number" "1 process, 2 threads" 1 -j 2
  row "$number" "2 ranks, fixed order" 2 -j 1
  row "$number" "2 ranks, --reduce fast" 2 -j 1 --reduce fast
done
