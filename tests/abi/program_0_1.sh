#!/bin/sh
# A program that was built against the headers of release 0.1 runs with today's shared library, and prints what it
# printed with that of 0.1 (program_0_1.txt). It checks by itself that nothing is written past the end of its structs.
set -eu
. tests/cli/support/environment.sh

out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$REMAT_PROGRAM_0_1" >"$out"
diff tests/abi/program_0_1.txt "$out"
