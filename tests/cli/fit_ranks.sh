#!/bin/sh
# `remat fit --ranks`: what each rank needs with every stage, and the simulation of a step.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
write_net
wide='[a : fully_connected]\nunit = 160\n[b : fully_connected]\nunit = 160\n[c : fully_connected]\nunit = 160\n'
sed "s/^\\[fc : /${wide}[fc : /" "$work/net.ini" >"$work/wide.ini"
# of STAGE KEY: a number of the last answer
of() {
  tr -d '\n' <"$work/out" | tr '{' '\n' | grep "\"shard\": \"$1\"" | tr '}' ',' | tr ',' '\n' | sed -n "s/.*\"$2\": //p"
}

expect 0 fit "$work/wide.ini" --ranks 4 --json -j 1
for stage in none optimizer gradients weights; do
  [ "$(of $stage min_budget_bytes)" -le "$(of $stage keep_all_bytes)" ] || complain "$stage: $(cat "$work/out")"
done
[ "$(of weights weight_bytes)" -lt $(($(of none weight_bytes) / 2)) ] || complain "weights are not shared: $(cat "$work/out")"
least=$(of weights min_budget_bytes) all=$(of weights keep_all_bytes)

# A rank takes what was said: with everything kept, and in the smallest budget.
if has_mpirun; then
  expect_ranks 0 4 train "$work/wide.ini" --shard weights --steps 1 --json -q -j 1
  out "\"allocated_bytes\": $all,"
  expect_ranks 0 4 train "$work/wide.ini" --shard weights --budget "$least" --steps 1 --json -q -j 1
  out "\"allocated_bytes\": $least,"
fi

# The smallest number of ranks for a budget: one fewer does not fit.
expect 0 fit "$work/wide.ini" --ranks 4 --budget "$least" --shard weights --json -j 1
ranks=$(of weights least_ranks)
if [ "$ranks" -gt 4 ] || [ "$ranks" -lt 2 ]; then complain "least_ranks is $ranks"; fi
expect 0 fit "$work/wide.ini" --ranks "$ranks" --budget "$least" --shard weights -j 1
expect 4 fit "$work/wide.ini" --ranks $((ranks - 1)) --budget "$least" --shard weights -j 1
out "no rank fits into the budget"

# A step: computing and transfers; a slower network takes longer, one rank sends nothing, and a faster device computes faster.
seconds() { of none "$1"; }
expect 0 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us --shard none --json -j 1
fast=$(seconds transfer_seconds) compute=$(seconds compute_seconds)
awk "BEGIN { s = $(seconds seconds) - $compute - $fast; exit !(s < 1e-6 && s > -1e-6) }" || complain "the parts are not the sum"
expect 0 fit "$work/wide.ini" --ranks 4 --network 1GB/s,10us --shard none --json -j 1
awk "BEGIN { exit !($(seconds transfer_seconds) > $fast) }" || complain "a slower network is not slower"
expect 0 fit "$work/wide.ini" --ranks 1 --network 1GB/s,10us --shard none --json -j 1
[ "$(seconds transfer_seconds)" = 0 ] || complain "one rank sends: $(cat "$work/out")"
expect 0 fit "$work/wide.ini" --ranks 4 --network 1GB/s,10us --shard none --device-speed 10TFLOPS,1TB/s --json -j 1
awk "BEGIN { exit !($(seconds compute_seconds) < $compute) }" || complain "a faster device is not faster"

# The best of all stages and micro-batches, in words.
expect 0 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us --budget 4MiB --step-samples 32 -j 1
out "32 samples a step"
out "the fastest is --shard"
out "ranks for 4 MiB"

# Pipelines are searched too, with the order of additions that is asked for. On a slow network each stage of a model that is too large
# for one rank is faster alone.
wide='[a : fully_connected]\nunit = 900\n[b : fully_connected]\nunit = 900\n[c : fully_connected]\nunit = 900\n'
sed "s/^\\[fc : /${wide}[fc : /" "$work/net.ini" >"$work/wider.ini"
expect 0 fit "$work/wider.ini" --ranks 4 --network 100MB/s,10us --budget 24MB --step-samples 48 --device-speed 20GFLOPS,10GB/s -j 1
out "2 stages"
out "4 stages"
out "the fastest is --shard none --pipeline"
expect 0 fit "$work/wider.ini" --ranks 4 --network 100MB/s,10us --budget 24MB --step-samples 48 --device-speed 20GFLOPS,10GB/s \
  --reduce fast --json -j 1
out '"fastest_pipeline": '
out '"pipelines": ['
expect 2 fit "$work/wide.ini" --ranks 4 --reduce sometimes
err "'fixed' or 'fast'"
for wrong in "--network fast" "--network 10GB/s,5" "--device-speed 100" "--device-speed 1TFLOPS,2" "--ranks 0" \
  "--ranks 4 --step-samples 6"; do
  # shellcheck disable=SC2086 # several arguments
  expect 2 fit "$work/wide.ini" --ranks 2 $wrong
done
expect 2 fit "$work/wide.ini" --network 10GB/s,10us
err "which is missing"
finish
