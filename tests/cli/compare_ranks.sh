#!/bin/sh
# More ranks than cores, with parts of everything, and rows of stages: two small models as one process trains them. `make check-ranks`
# compares all examples.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
CASES="8:weights 8:p2:optimizer" timeout -k 5 400 scripts/compare_ranks.sh "$REMAT" fruit spirals >"$work/out" ||
  complain "compare_ranks.sh fails: $(cat "$work/out")"
out "4 trainings compared, 0 differ"
finish
