#!/bin/sh
# The data of the examples is what its scripts write, and no time of clock_unseen.txt is in clock.txt.
. tests/cli/support/expect.sh
mkdir -p "$work/scripts" "$work/examples/data"
cp scripts/make_*.sh "$work/scripts/"
for script in "$work"/scripts/make_*.sh; do sh "$script" || complain "$(basename "$script") fails"; done
diff -r examples/data "$work/examples/data" >"$work/diff" || complain "examples/data differs: $(head -n 5 "$work/diff")"
cut -c 1-5 examples/data/clock_unseen.txt >"$work/times"
if grep -qFf "$work/times" examples/data/clock.txt; then complain "a time that should be unseen is in clock.txt"; fi
[ "$(cat examples/data/clock.txt examples/data/clock_unseen.txt | cut -c 1-5 | sort -u | wc -l)" = 1440 ] ||
  complain "clock.txt and clock_unseen.txt are not all times of a day"
finish
