#!/bin/sh
# What takes long says so on a terminal, and on a terminal only.
set -eu
. tests/cli/support/expect.sh

command -v script >/dev/null 2>&1 || { echo "script is not installed"; exit 77; }
awk 'BEGIN { srand(1); print "id,lower,upper,size"; for (i = 0; i < 20000; i++) { at = int(20000 * rand())
  print i "," at "," at + 1 + int(200 * rand()) "," 1 + int(100000 * rand()) } }' >"$work/rows.csv"

# The search has no end that anybody would wait for: the line must come. It is looked for up to a minute.
script -qec "exec '$REMAT' arena '$work/rows.csv' --effort 100000000000" /dev/null >"$work/tty" </dev/null &
pid=$!
for _ in $(seq 300); do
  ! grep -q 'searching for a placement.*[0-9] s' "$work/tty" || break
  sleep 0.2
done
grep -q 'searching for a placement.*[0-9] s' "$work/tty" || complain "nothing is said while the search goes on"
kill "$pid" 2>/dev/null || complain "the search has ended"
wait "$pid" 2>/dev/null || true

# Where it is over soon, or where stderr is a file, there is no such line.
expect 0 arena "$work/rows.csv" --effort 0
if grep -q 'searching' "$work/err"; then complain "a file gets the line of a terminal"; fi
expect 0 fit examples/models/mlp.ini
silent err
finish
