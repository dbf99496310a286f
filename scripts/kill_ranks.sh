#!/bin/sh
# Kills random ranks of a training at random times: kill_ranks.sh PROGRAM COUNT [SEED]
# After each kill all ranks must end within 20 seconds, and the rank and its signal must be named. Open MPI's mpirun may block in its own
# end when a rank is killed while it connects to it (PMIx_server_finalize waits for a lock of a thread that is gone): where all ranks have
# ended and only mpirun is left, that is counted, and mpirun is killed. The training goes on from its last
# save with another number of ranks and another stage of --shard or another pipeline; at the end it has the weights that one process
# has after as many steps. MODES="pipeline shard" (or one of them, or none) for these only.
set -eu
remat=$1 count=$2 seed=${3:-1}
work=$(mktemp -d)
launcher=""
# shellcheck disable=SC2317 # called by the trap
clean() {
  [ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP
fail() {
  echo "kill_ranks.sh: seed $seed, kill $kill: $1" >&2
  sed 's/^/  | /' "$work/err" >&2
  exit 1
}
# random BELOW: sets `drawn` to a number from 0 on. All numbers are of one stream: the first numbers of seeds that follow each other go
# together, and some pairs of choices would never be drawn.
awk -v seed="$seed" -v count=$((count * 12 + 12)) 'BEGIN { srand(seed); while (count-- > 0) print rand() }' >"$work/numbers"
draws=0
random() {
  draws=$((draws + 1))
  drawn=$(awk -v draw="$draws" -v below="$1" 'NR == draw { print int($1 * below); exit }' "$work/numbers")
}
ranks_of() { # the processes of the launcher
  pgrep -P "$launcher" 2>/dev/null || true
}
living_ranks() { # those that have not ended
  for process in $(ranks_of); do
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$process/stat" 2>/dev/null || true)
    case $state in "" | Z | X) ;; *) echo "$process" ;; esac
  done
}
cat >"$work/net.ini" <<'END'
[Model]
batch_size = 2
accumulate = 12
[Optimizer]
type = adam
learning_rate = 0.0001
[Dataset]
type = random
samples = 240
[in : input]
input_shape = 3:8:8
[conv : conv2d]
filters = 16
kernel_size = 3
[norm : batch_normalization]
[flat : flatten]
[fc : fully_connected]
unit = 64
activation = relu
[out : fully_connected]
unit = 5
[loss : cross_entropy]
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
save=$work/save.safetensors
# train STEPS RANKS OPTION...: goes on from the last save, if there is one.
train() {
  steps=$1 ranks=$2
  shift 2
  [ ! -f "$save" ] || set -- "$@" --resume "$save"
  exec mpirun --oversubscribe -np "$ranks" "$remat" train "$work/net.ini" --steps "$steps" "$@" --save "$save" --save-every 1 -j 1 -q
}
# choose WORD...: sets `chosen` to one of them.
choose() {
  random $#
  shift "$drawn"
  chosen=$1
}
# draw_mode: sets `n`, and `shared` to what the ranks share: options and their values.
draw_mode() {
  # shellcheck disable=SC2086 # one word or several
  choose ${MODES:-none shard pipeline}
  case $chosen in
  pipeline)
    choose 2:2 3:3 4:2 4:4
    n=${chosen%:*} shared="--pipeline ${chosen#*:}"
    choose none optimizer
    shared="$shared --shard $chosen"
    ;;
  shard)
    choose optimizer gradients weights
    shared="--shard $chosen"
    choose 2 3 4
    n=$chosen
    ;;
  *)
    shared="--shard none"
    choose 2 3 4
    n=$chosen
    ;;
  esac
}
step_of() { grep -ao '"step":"[0-9]*"' "$save" | grep -o '[0-9]*'; }

slowest=0 kill=0 blocked=0
while [ "$kill" -lt "$count" ]; do
  kill=$((kill + 1))
  draw_mode
  : >"$work/began"
  # shellcheck disable=SC2086 # several words
  (train 1000000 "$n" $shared) >"$work/out" 2>"$work/err" </dev/null &
  launcher=$!
  # One in four while the ranks start; the others after a first save.
  tries=0
  while [ "$(ranks_of | wc -l)" -lt "$n" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "$n ranks do not start"
    sleep 0.05
  done
  tries=0
  random 4
  if [ "$drawn" != 0 ]; then
    while [ -z "$(find "$save" -newer "$work/began" 2>/dev/null)" ]; do
      tries=$((tries + 1))
      [ "$tries" -lt 1200 ] || fail "nothing is saved within a minute"
      sleep 0.05
    done
  fi
  random 400
  sleep "$(awk -v ms="$drawn" 'BEGIN { print ms / 1000 }')"
  random "$n"
  victim=$(ranks_of | sed -n "$((drawn + 1))p")
  [ -n "$victim" ] || fail "the training ended by itself"
  number=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
  kill -KILL "$victim" || fail "rank $victim cannot be killed"
  tries=0
  while kill -0 "$launcher" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" = 400 ]; then
      [ -z "$(living_ranks)" ] || fail "ranks did not end within 20 seconds"
      kill -KILL "$launcher"
      blocked=$((blocked + 1)) tries=0
      break
    fi
    sleep 0.05
  done
  code=0
  wait "$launcher" || code=$?
  launcher=""
  [ "$code" != 0 ] || fail "it ended as if nothing had happened"
  tr '\n' ' ' <"$work/err" | grep -q "rank $number with PID .*signal 9" || fail "rank $number and its signal are not named"
  [ "$tries" -le "$slowest" ] || slowest=$tries
  echo "$shared" >>"$work/killed"
  [ $((kill % 50)) != 0 ] || echo "$kill kills" >&2
done
# Two more steps from the last save, and as many in one process from the beginning.
steps=2
[ ! -f "$save" ] || steps=$(($(step_of) + 2))
(train "$steps" 3) >"$work/out" 2>"$work/err" </dev/null || fail "it does not go on"
"$remat" train "$work/net.ini" --steps "$steps" --save "$work/alone.safetensors" -q 2>"$work/err" || fail "one process fails"
cmp -s "$save" "$work/alone.safetensors" || fail "after $steps steps the weights are not those of one process"
sort "$work/killed" | uniq -c
echo "$count kills, $steps steps with the weights of one process; the slowest end took $((slowest * 50)) ms; mpirun blocked $blocked times after all ranks had ended"
