#!/bin/sh
# The main job on something small that ships with the project: a plan under a budget, its check, and the whole curve.
set -eu
remat=$1
profile=examples/transformer.json
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT

printf '\n$ remat plan %s --budget 6KiB -o plan.json\n' $profile
"$remat" plan $profile --budget 6KiB -o "$plan"
printf '\n$ remat check plan.json --profile %s\n' $profile
"$remat" check "$plan" --profile $profile
printf '\n$ remat sweep %s\n' $profile
"$remat" sweep $profile
