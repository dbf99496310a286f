#!/bin/sh
# The main job on something small that ships with the project: a plan under a budget, and its check.
set -eu
remat=$1
profile=examples/transformer.json
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT

say() { printf '\n$ %s\n' "$*"; }

say remat plan $profile --strategy full:2
"$remat" plan $profile --strategy full:2 -o "$plan"
say remat check plan.json --profile $profile
"$remat" check "$plan" --profile $profile
