#!/bin/sh
# Simulated against measured steps of ranks on this machine: compare_scale.sh [PROGRAM [MODEL.ini [ROUNDS]]]
# Needs mpicc and mpirun, two idle cores, and minutes. The network is measured first, with two ranks. With more ranks than cores, a rank
# has a part of a core, and its measured time is divided accordingly; a pipeline uses what another stage leaves, so it is compared with
# as many stages as cores only.
set -eu
remat=${1:-build/remat} model=${2:-examples/models/gpt_bench.ini} rounds=${3:-2} cores=2 micro=8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

mpicc -O2 bench/mpi/mpi_network.c -o "$work/network"
network=$(mpirun --oversubscribe -np 2 "$work/network" </dev/null)
echo "network $network; $micro micro-batches of one sample, one thread a rank"
seconds() { tr ',{' '\n' | sed -n "s/.*\"$1\": \\([0-9.e-]*\\).*/\\1/p" | head -1; }

# compare RANKS NAME OPTION...: a row.
compare() {
  count=$1 name=$2
  shift 2
  simulated=$("$remat" fit "$model" --batch 1 --set model.accumulate=$micro --ranks "$count" --network "$network,memory" \
    --profile "$work/profile.json" -j 1 --json "$@" 2>/dev/null | seconds seconds)
  [ "$count" != 1 ] || shift $#
  measured=$(mpirun --oversubscribe -np "$count" "$remat" train "$model" --batch 1 --set model.accumulate=$micro --steps 5 -j 1 \
    --strategy none --json -q "$@" 2>/dev/null </dev/null | seconds step_seconds)
  awk -v n="$count" -v cores="$cores" -v name="$name" -v s="$simulated" -v m="$measured" \
    'BEGIN { if (n > cores) m *= cores / n; printf "| %d | %s | %.3f s | %.3f s | %+.0f %% |\n", n, name, s, m, 100 * (s / m - 1) }'
}

for round in $(seq "$rounds"); do
  echo "round $round"
  "$remat" profile "$model" --batch 1 --set model.accumulate=$micro -j 1 --repeats 7 -o "$work/profile.json" >/dev/null 2>&1
  compare 1 "" --shard none
  for count in 2 4; do
    for shard in none optimizer gradients weights; do compare "$count" "\`--shard $shard\`" --shard $shard; done
  done
  compare 2 '`--pipeline 2`' --pipeline 2
done
