#!/bin/sh
# --save DIR/: what cannot be saved is found before the first step, and a training is not lost where its folder is.
. tests/cli/support/expect.sh
export OMP_NUM_THREADS=1 # the models are tiny
model=$PWD/tests/reference/pretrained/gpt2
data="--set dataset.type=random --set dataset.samples=8 --set model.batch_size=2"
common="$data --length 12 --strategy none -q"
held_out="$data --length 12 --set dataset.validation_split=0.5"
lora="--lora rank=2,targets=c_attn"

# refused CODE TEXT ARGUMENT...: before the first step, and so before there is a log.
refused() {
  code=$1 text=$2
  shift 2
  expect "$code" train "$@" --strategy none -q --steps 2 --log "$work/first.jsonl"
  err "$text"
  [ ! -e "$work/first.jsonl" ] || complain "it is noticed late: $text"
  rm -f "$work/first.jsonl"
}
# shellcheck disable=SC2086
refused 2 "is trained besides the adapters" "$model" $common $lora --train 'h.1.mlp.*' --save "$work/both/"
refused 2 "only a model that came from a folder" examples/models/mlp.ini --lora rank=2 --save "$work/merged/" --merge
# shellcheck disable=SC2086
refused 6 "cannot be written" "$model" $common $lora --save "$work/no/folder/"
# A file may have 2 KiB: not enough for the weights.
code=0
# shellcheck disable=SC2086
(ulimit -f 4 && "$REMAT" train "$model" $common --steps 2 --save "$work/small/" --log "$work/first.jsonl" 2>"$work/err") || code=$?
[ $code = 6 ] || complain "a file that may not be so large: exit code $code; it said: $(cat "$work/err")"
err "ulimit -f"
[ ! -e "$work/first.jsonl" ] || complain "too little room is noticed late"

# A training that diverges leaves the last finite weights.
# shellcheck disable=SC2086
expect 8 train "$model" $common $lora --steps 50 --set optimizer.learning_rate=1e30 --save "$work/wild/"
err "the last finite weights were saved to $work/wild/"
# shellcheck disable=SC2086
expect 0 eval "$model" $held_out --adapter "$work/wild"

# The folder above is gone at the end: the training is saved in another place.
mkdir "$work/gone" "$work/here"
cd "$work/here" || exit 1
# shellcheck disable=SC2086
"$REMAT" train "$model" $common $lora --steps 100000000 --log "$work/run.jsonl" --save "$work/gone/adapter/" 2>"$work/err" &
pid=$! tries=0
until [ -s "$work/run.jsonl" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
kill -STOP $pid
rm -rf "$work/gone"
kill -TERM $pid
kill -CONT $pid
code=0
wait $pid || code=$?
[ $code = 6 ] || complain "a training whose folder is gone ends with $code"
err "the training was saved to ./remat-$pid-adapter instead"
# shellcheck disable=SC2086
expect 0 eval "$model" $held_out --adapter "$work/here/remat-$pid-adapter"

# All other places are gone, too: it is said that nothing is saved, and no empty folder stays.
if [ ! -d /dev/shm ] || [ ! -w /dev/shm ]; then
  part_skipped "there is no /dev/shm"
else
  mkdir "$work/gone"
  export TMPDIR="$work/none" HOME="$work/none"
  # shellcheck disable=SC2086
  "$REMAT" train "$model" $common $lora --steps 100000000 --log "$work/again.jsonl" --save "$work/gone/adapter/" 2>"$work/err" &
  pid=$! tries=0
  until [ -s "$work/again.jsonl" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
  kill -STOP $pid
  rm -rf "$work/gone" "$work/here"
  kill -INT $pid
  kill -CONT $pid
  wait $pid
  cd / || exit 1
  err "the training was saved to /dev/shm/remat-$pid-adapter instead"
  err "copy it"
  rm -rf "/dev/shm/remat-$pid-adapter"
fi
finish
