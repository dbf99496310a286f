#!/bin/sh
# Ranks that cannot train together say so once, before the first step, with the number of the rank.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
once() { [ "$(grep -cF -- "$1" "$work/err")" = 1 ] || complain "not said once: '$1': $(head -c 600 "$work/err")"; }
write_net

expect_ranks 2 5 train "$work/net.ini"
once "5 ranks cannot share"

# differ CODE TEXT COMMAND...: the command is what rank 1 runs in place of the others' training.
differ() {
  wanted=$1 text=$2 code=0
  shift 2
  # shellcheck disable=SC2016 # for the shell of the rank
  ranks 3 sh -c 'case $OMPI_COMM_WORLD_RANK in 1) shift; exec "$@" ;; *) exec "$REMAT" train "$1" --steps 2 -q ;; esac' \
    sh "$work/net.ini" "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || complain "rank 1 with $*: exit code $code: $(head -c 600 "$work/err")"
  once "$text"
}
differ 2 "rank 1 has another seed than rank 0" "$REMAT" train "$work/net.ini" --steps 2 --seed 77
differ 2 "rank 1 has other options than rank 0" "$REMAT" train "$work/net.ini" --steps 3
differ 2 "rank 1 has another model than rank 0" "$REMAT" train "$work/net.ini" --steps 2 --set drop.rate=0.4
differ 2 "rank 1 has other data than rank 0" "$REMAT" train "$work/net.ini" --steps 2 --set dataset.samples=122
differ 6 "remat: rank 1:" "$REMAT" train "$work/nowhere.ini"
err "nowhere.ini"

# Divergence comes to all ranks.
expect_ranks 8 2 train "$work/net.ini" --steps 4 --set optimizer.learning_rate=1e30 -q
once "diverged"
finish
