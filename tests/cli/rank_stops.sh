#!/bin/sh
# A signal at the launcher or at one rank stops all ranks after the same step; the first saves, and another number goes on.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
command -v pgrep >/dev/null || { echo "[  SKIPPED ] pgrep is not installed"; exit 77; }
write_net

# stop CODE SIGNAL WHERE ARGUMENT...: a training of three ranks, stopped when its log has steps.
stop() {
  wanted=$1 signal=$2 where=$3
  shift 3
  rm -f "$work/log" "$work/saved.safetensors"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_odls_base_sigkill_timeout=3
  export OMPI_MCA_hwloc_base_binding_policy=none ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
  timeout -k 5 100 mpirun --oversubscribe -np 3 "$REMAT" train "$work/net.ini" --steps 10000000 --log "$work/log" \
    --save "$work/saved.safetensors" --set dataset.validation_every=1000000 -j 1 "$@" >"$work/out" 2>"$work/err" </dev/null &
  limit=$! tries=0
  while ! grep -qs '"step": 3,' "$work/log" && [ $tries -lt 600 ]; do tries=$((tries + 1)); sleep 0.05; done
  launcher=$(pgrep -P $limit)
  case $where in
    launcher) kill "-$signal" "$launcher" ;;
    rank) kill "-$signal" "$(pgrep -P "$launcher" | sed -n 2p)" ;;
  esac
  code=0
  wait $limit || code=$?
  [ "$code" = "$wanted" ] || complain "$signal at the $where: exit code $code: $(head -c 600 "$work/err")"
  taken=$(grep -c '"step": .*"rate"' "$work/log")
  grep -aqE "\"step\": ?\"$taken\"" "$work/saved.safetensors" || complain "$signal at the $where: step $taken is not saved: $(head -c 600 "$work/err")"
}
stop 1 INT launcher
stop 143 TERM rank --pipeline 3
[ "$(grep -c '(interrupted)' "$work/err")" = 1 ] || complain "not said once: $(head -c 600 "$work/err")"
expect_ranks 0 2 train "$work/net.ini" --steps $((taken + 1)) --set dataset.validation_every=1000000 --resume "$work/saved.safetensors" --save "$work/saved.safetensors" -q
expect 0 train "$work/net.ini" --steps $((taken + 1)) --set dataset.validation_every=1000000 --save "$work/alone.safetensors" -q
cmp -s "$work/saved.safetensors" "$work/alone.safetensors" || complain "a stopped training goes on with other bits"
finish
