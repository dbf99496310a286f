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
expect 0 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us,memory --shard none --json -j 1
awk "BEGIN { exit !($(seconds transfer_seconds) >= $fast) }" || complain "what processors copy is faster than a network"
expect 0 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us,memory --shard none -j 1
out "through memory"
expect 2 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us,disk --shard none -j 1
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

# Rows that share the optimizer's state fit where others do not. With a little more memory, two stages cannot beat four, and are not
# planned to the end.
of_wider() { # BUDGET OPTION...
  budget=$1
  shift
  expect 0 fit "$work/wider.ini" --ranks 4 --network 100MB/s,10us --budget "$budget" --step-samples 48 \
    --device-speed 20GFLOPS,10GB/s -j 1 "$@"
}
of_wider 16MB
out "2 stages, optimizer "
out "the fastest is --shard optimizer --pipeline 2 with"
of_wider 18MB
grep -q '^2 stages .* or more$' "$work/out" || complain "two stages were planned: $(cat "$work/out")"
of_wider 18MB --json
out '{"pipeline": 4, "shared": "none", "fits": true'
if grep -q '{"pipeline": 2' "$work/out"; then complain "a bound is no plan: $(cat "$work/out")"; fi
silent err

# Without a budget there is no number of ranks; with a batch, no other batch and no pipeline is tried; slow devices take seconds.
expect 0 fit "$work/wide.ini" --ranks 4 --batch 2 --network 10GB/s,10us --device-speed 1MFLOPS -j 1
if grep -q "ranks for\|stages" "$work/out"; then complain "more than was asked for: $(cat "$work/out")"; fi
grep -qE '^none +3 x 2 .* [0-9.]+ s +[0-9.]+ s ' "$work/out" || complain "no seconds: $(cat "$work/out")"
out "the fastest is --shard none with micro-batches 3 x 2 for each rank"
expect 0 fit "$work/wide.ini" --ranks 4 --network 10GB/s,10us --shard gradients -j 1
if grep -q "stages" "$work/out"; then complain "stages do not share gradients: $(cat "$work/out")"; fi
# Nothing fits, not even stages.
for form in "" --json; do
  # shellcheck disable=SC2086 # an option or none
  expect 4 fit "$work/wide.ini" --ranks 4 --budget 200KB --network 10GB/s,10us -j 1 $form
  case $form in
    "") out "no number" && out "more than 4096" && out "4 stages" && out "no rank fits into the budget" ;;
    *) out '"fits": false, "ranks": 4' && out '"least_ranks": 0' ;;
  esac
done
# What cannot be answered leaves nothing on standard output.
for pipeline in "" "--pipeline 2"; do
  # shellcheck disable=SC2086 # an option or none
  expect 2 fit "$work/wide.ini" --ranks 4 --batch 5 --step-samples 32 --network 10GB/s,10us $pipeline
  err "samples that a rank has in a step are not a multiple of a batch of 5"
  silent out
done

# Stages: with a network and the fastest batch, in a budget, in one that is too small, and more of them than there are layers.
expect 0 fit "$work/wide.ini" --ranks 4 --pipeline 2 --network 10GB/s,10us --step-samples 32 -j 1
out "4 ranks, 2 stages, 8 micro-batches in each row of stages"
out "a step with micro-batches"
expect 0 fit "$work/wide.ini" --ranks 4 --pipeline 2 --budget 3MB --strategy none -j 1
out "in the budget"
expect 4 fit "$work/wide.ini" --ranks 4 --pipeline 2 --budget 1MB --network 10GB/s,10us -j 1
out "no cut into so many stages was found that fits into the budget"
if grep -q "a step with" "$work/out"; then complain "a step that does not fit takes no time"; fi
expect 4 fit "$work/wide.ini" --ranks 4 --pipeline 2 --budget 1MB --network 10GB/s,10us --json -j 1
out '"fits": false'
if grep -q '"step"' "$work/out"; then complain "a step that does not fit takes no time"; fi
expect 2 fit "$work/wide.ini" --ranks 64 --pipeline 64
err "the model cannot be cut into 64 stages: 8 of its layers can begin one"

# refused WHY ARGUMENT...
refused() {
  why=$1
  shift
  expect 2 fit "$work/wide.ini" "$@"
  err "$why"
  silent out
}
long=1111111111111111111111111111111111111111111111111111111111111111GB/s
for wrong in fast 10GB/s,5 10GB/s,us 10GB/s,infs ,5us /s,5us 10XB/s,5us -1GB/s,5us $long,5us; do
  refused "--network takes a speed and a latency such as 25GB/s,5us, not '$wrong'" --ranks 2 --network "$wrong"
done
for wrong in 100 1TFLOPS,2 1TFLOPS,0GB/s -3GFLOPS; do
  refused "--device-speed takes a speed such as 100GFLOPS or 400TFLOPS,2TB/s, not '$wrong'" --ranks 2 --device-speed "$wrong"
done
refused "--ranks takes a number from 1 to 1048576" --ranks 0
refused "--ranks takes a number from 1 to 1048576" --ranks 1048577
refused "--step-samples must be a multiple of --ranks" --ranks 4 --step-samples 6
refused "--step-samples must be a multiple of the rows of stages" --ranks 4 --pipeline 2 --step-samples 33
refused "--pipeline takes a number of stages from 2 to 65536" --ranks 4 --pipeline 1
refused "--pipeline takes a number of stages from 2 to 65536" --ranks 4 --pipeline 65537
refused "--pipeline is for --ranks N, where N is a multiple of its stages" --pipeline 2
refused "which is missing" --network 10GB/s,10us
refused "which is missing" --step-samples 8
finish
