#!/bin/sh
# How many threads compute, and that the program needs no environment of its own for them.
. tests/cli/support/expect.sh
unset OMP_NUM_THREADS OMP_THREAD_LIMIT OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME

threads() { sed -n 's/.*"threads": \([0-9]*\),.*/\1/p' "$work/out"; }
train() { expect 0 train examples/models/spirals.ini --steps 1 --quiet --json "$@"; }

# The default is what the process may use; OMP_NUM_THREADS is asked next, --threads first.
train
[ "$(threads)" = "$(nproc)" ] || complain "$(threads) threads by default, and nproc says $(nproc)"
OMP_NUM_THREADS=3
export OMP_NUM_THREADS
train
[ "$(threads)" = 3 ] || complain "$(threads) threads, and OMP_NUM_THREADS is 3"
expect 0 doctor
out "3 unless you ask"
train --threads 2
[ "$(threads)" = 2 ] || complain "$(threads) threads with --threads 2"
unset OMP_NUM_THREADS
if command -v taskset >/dev/null 2>&1; then
  first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
  taskset -c "$first" "$REMAT" train examples/models/spirals.ini --steps 1 --quiet --json >"$work/out" 2>"$work/err"
  [ "$(threads)" = 1 ] || complain "$(threads) threads on one core"
fi

# A training runs in the process that was started, with the environment that it was given: it does not start itself anew.
env -i "$REMAT" train examples/models/spirals.ini --steps 1000000000 --quiet --threads 2 --log "$work/log" >"$work/out" 2>&1 &
pid=$!
tries=0
until [ -s "$work/log" ] || [ "$tries" = 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
[ -s "$work/log" ] || complain "the training does not begin: $(cat "$work/out")"
[ "$(cat /proc/$pid/comm)" = "$(basename "$REMAT")" ] || complain "the process is called $(cat /proc/$pid/comm)"
left=$(tr '\0' '\n' <"/proc/$pid/environ" | grep -E 'OMP|KMP' || true)
[ -z "$left" ] || complain "the program gave itself $left"
kill -KILL $pid
wait $pid 2>/dev/null || true
finish
