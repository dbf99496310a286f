#!/bin/sh
# A training whose folder is gone at the end is saved in another place.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model

# train_and_lose FILE FOLDER: trains in FOLDER/.. until FILE is there once, takes FOLDER away and ends the training.
train_and_lose() {
  file=$1 folder=$2
  "$REMAT" train "$work/spirals.ini" --steps 100000000 --save "$file" --save-every 1 -q -j 1 2>"$work/err" &
  pid=$!
  tries=0
  until [ -e "$file" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
  kill -STOP $pid
  rm -rf "$folder"
  kill -TERM $pid
  kill -CONT $pid
  code=0
  wait $pid || code=$?
  [ $code = 6 ] || complain "a training whose file cannot be saved ends with $code"
  instead=$(sed -n 's/^remat: the training was saved to \(.*\) instead$/\1/p' "$work/err")
  [ -n "$instead" ] || complain "it is not saved elsewhere: $(tail -n 3 "$work/err")"
}

# A name that leaves no room for more letters.
name=$(printf '%0250d' 0)
mkdir "$work/gone" "$work/here"
root=$PWD
cd "$work/here" || exit 1
train_and_lose "$work/gone/$name" "$work/gone"
expect 0 train "$work/spirals.ini" --resume "$instead" --steps 1 -q

# No folder of the disk is left: in memory.
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
  export TMPDIR="$work/none" HOME="$work/none"
  train_and_lose "$work/here/weights.st" "$work/here"
  cd "$root" || exit 1
  err "copy it"
  case $instead in /dev/shm/*) ;; *) complain "it is saved to $instead" ;; esac
  expect 0 train "$work/spirals.ini" --resume "$instead" --steps 1 -q
  rm -f "$instead"
else
  part_skipped "there is no /dev/shm"
fi
finish
