#!/bin/sh
# A rank that is killed ends all, and the training goes on from its last save. `make check-ranks` kills 500.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
command -v pgrep >/dev/null || { echo "[  SKIPPED ] pgrep is not installed"; exit 77; }
timeout -k 5 200 scripts/kill_ranks.sh "$REMAT" 3 >"$work/out" || complain "kill_ranks.sh fails"
out "3 kills"
finish
