#!/bin/sh
# `remat train` as a person uses it.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini

# What will happen, how it goes, what it came to.
expect 0 train "$model" --save "$work/whole.st" --log "$work/log.jsonl"
silent out
err "parameters, batch 20"
err "blocks: "
err "validation loss"
err "80 steps"
grep -q "^memory  *\([0-9,]*\)  *\1  bytes for tensors" "$work/err" || complain "predicted and allocated bytes differ"
json_lines "$work/log.jsonl"
[ "$(grep -c '^{"step": [0-9]*, "epoch"' "$work/log.jsonl")" = 80 ] || complain "the log has not 80 steps"
head -n 1 "$work/log.jsonl" | grep -q '"format": "remat-run"' || complain "the log has no head"
tail -n 1 "$work/log.jsonl" | grep -q '"end": true' || complain "the log has no end"

# Quiet, and the closing figures as JSON.
expect 0 train "$model" --steps 3 -q --json
silent err
tr -d '\n' <"$work/out" >"$work/one-line.json"
echo >>"$work/one-line.json"
json_lines "$work/one-line.json"
out '"steps": 3,'
out '"data_seconds": '

# Stopped and resumed after an epoch: the same bytes as without the pause, whatever was recomputed and with any number of threads.
expect 0 train "$model" --steps 32 --save "$work/part.st" --log "$work/parts.jsonl" -q --strategy none -j 1
expect 0 train "$model" --resume "$work/part.st" --save "$work/part.st" --log "$work/parts.jsonl" -q --strategy full -j 2
cmp "$work/whole.st" "$work/part.st" || complain "the resumed training ended with other bits"
json_lines "$work/parts.jsonl"
[ "$(grep -c '^{"step": [0-9]*, "epoch"' "$work/parts.jsonl")" = 80 ] || complain "the log was not continued"

# The seed is part of what is resumed.
expect 0 train "$model" --seed 5 --save "$work/whole5.st" -q
expect 0 train "$model" --seed 5 --steps 16 --save "$work/part5.st" -q
expect 0 train "$model" --resume "$work/part5.st" --save "$work/part5.st" -q
cmp "$work/whole5.st" "$work/part5.st" || complain "the seed was not resumed"
! cmp -s "$work/whole.st" "$work/whole5.st" || complain "the seed changes nothing"

# Weights alone are enough to start from, not to resume.
expect 0 train "$model" --steps 5 --save "$work/weights.st" --weights-only -q
expect 0 train "$model" --steps 2 --weights "$work/weights.st" -q
expect 3 train "$model" --resume "$work/weights.st"
err "no state"

# All steps are taken: that is said, and what is saved again is the same.
expect 0 train "$model" --resume "$work/whole.st" --save "$work/again.st"
err "nothing to do: 80 of 80 steps are taken"
! grep -q nan "$work/err" || complain "a training without a step has a loss"
cmp "$work/whole.st" "$work/again.st" || complain "nothing was done, but the file is another"

expect 0 train "$model" --steps 0
err "nothing to do: 0 steps were asked for"

# Saved on the way as well.
expect 0 train "$model" --steps 40 --save "$work/every.st" --save-every 16 -q
expect 0 train "$model" --resume "$work/every.st" --save "$work/every.st" --save-every 7 -q
cmp "$work/whole.st" "$work/every.st" || complain "saving on the way changes the bits"
expect 2 train "$model" --save-every 5
err "--save"
expect 2 train "$model" --save "$work/x.st" --save-every 0
mkdir "$work/gone"
"$REMAT" train "$model" --steps 100000000 --save "$work/gone/w.st" --save-every 1 -q -j 1 2>"$work/err" &
pid=$!
until [ -e "$work/gone/w.st" ] || ! kill -0 $pid 2>"$work/none"; do sleep 0.05; done
[ -e "$work/gone/w.st" ] || complain "nothing is saved while it trains"
mv "$work/gone" "$work/elsewhere"
tries=0
until grep -q "the training goes on" "$work/err" || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 6 ] || complain "a training whose file cannot be saved ends with $code"
err "warning: $work/gone/w.st"
instead=$(sed -n 's/^remat: the training was saved to \(.*\) instead$/\1/p' "$work/err")
expect 0 train "$model" --resume "$instead" --steps 1 -q
rm -f "$instead"
expect 0 train "$model" --resume "$work/elsewhere/w.st" --steps 1 -q

# Ctrl-C and SIGTERM: the step ends, everything is saved, and it can go on.
for stop in "INT 130" "TERM 143"; do
  rm -f "$work/stopped.jsonl"
  "$REMAT" train "$model" --steps 100000000 --save "$work/stopped.st" --log "$work/stopped.jsonl" -j 1 --json \
    >"$work/out" 2>"$work/err" &
  pid=$!
  until [ "$(grep -c '^{"step"' "$work/stopped.jsonl" 2>"$work/none")" -gt 3 ] 2>"$work/none" ||
    ! kill -0 $pid 2>"$work/none"; do sleep 0.05; done
  kill -"${stop% *}" $pid
  code=0
  wait $pid || code=$?
  [ $code = "${stop#* }" ] || complain "a training after SIG${stop% *} ends with $code: $(tail -n 3 "$work/err")"
  err "(interrupted)"
  out '"stopped": true'
  json_lines "$work/stopped.jsonl"
  steps=$(grep -c '^{"step": [0-9]*, "epoch"' "$work/stopped.jsonl")
  expect 0 train "$model" --resume "$work/stopped.st" --steps $((steps + 2)) -q --json
  out '"steps": 2,'
done
expect 0 train --help
out "130, 143 or 129"

# A model from standard input: its data is looked for in the current folder.
sed "s|spirals.csv|$work/&|" "$model" >"$work/absolute.ini"
expect_stdin 0 "$work/absolute.ini" train - --save "$work/stdin.st" -q
cmp "$work/whole.st" "$work/stdin.st" || complain "a model from standard input trains to other bits"

# Every instruction set of the processor can be chosen. Those it has not got are refused, and the others named.
features=$("$REMAT" doctor --json | sed -n 's/.*"features", "value": "\(.*\)".*/ \1 /p')
sets=portable
case $features in *" avx2 fma "*) sets="avx2 $sets" ;; esac
case $features in *" avx512f avx512bw avx512dq avx512vl "*) sets="avx512 $sets" ;; esac
case $features in *" avx512bf16 "*) sets="avx512bf16 $sets" ;; esac
case $features in *" amx-bf16 "*) sets="amx $sets" ;; esac
for set in amx avx512bf16 avx512 avx2 portable; do
  case " $sets " in
    *" $set "*)
      expect 0 train "$model" --kernels "$set" --steps 2 --json -q
      out "\"kernels\": \"$set\""
      ;;
    *)
      expect 2 train "$model" --kernels "$set" --steps 2
      err "no kernels '$set' for this processor; there are fast, $(echo "$sets" | sed 's/ /, /g') and reference"
      ;;
  esac
done
expect 2 train "$model" --kernels quick
err "there are fast, $(echo "$sets" | sed 's/ /, /g') and reference"

# Errors say what is wrong, with the right code.
expect 2 train
err "MODEL.ini is missing"
expect 6 train "$work/none.ini"
err "none.ini"
expect 2 train "$model" --strategy sometimes
err "sometimes"
expect 2 train "$model" --batch 0
expect 2 train "$model" --batch 1000
err "1000"
expect 2 train "$model" --resume "$work/part.st" --weights "$work/part.st"
# What would do nothing is an error.
expect 2 train "$model" --resume "$work/part.st" --seed 5
err "leave out --seed"
expect 2 train "$model" --weights-only
err "--save"
expect 2 train "$model" --plan "$work/plan.json" --strategy full
err "leave out --strategy"
expect 2 train "$model" --batch 0
err "or auto"
expect 4 train "$model" --budget 1KiB
err "the smallest plan that was found takes"
# A file that cannot be written is noticed before the first step.
for option in --save --log --trace; do
  for path in no/folder.st spirals.csv/file.st gone/ .; do
    expect 6 train "$model" --steps 1 --log "$work/first.jsonl" $option "$work/$path"
    err "$work/$path: cannot be written"
    [ ! -e "$work/first.jsonl" ] || complain "$option $path is noticed late"
  done
done
if [ "$(id -u)" != 0 ]; then
  mkdir "$work/locked" && chmod 555 "$work/locked"
  expect 6 train "$model" --steps 1 --save "$work/locked/w.st"
  err "$work/locked/w.st: cannot be written"
fi
expect 0 train "$model" --steps 1 --save /dev/null --log /dev/null -q
# At the end it still tells what the training came to.
if [ -w /dev/full ]; then
  expect 6 train "$model" --steps 2 --save /dev/full
  err "2 steps"
  tail -n 2 "$work/err" | grep -q "/dev/full" || complain "the error is not at the end: $(tail -n 2 "$work/err")"
  # What could not be saved there is saved elsewhere.
  instead=$(sed -n 's/^remat: the training was saved to \(.*\) instead$/\1/p' "$work/err")
  mv "$instead" "$work/instead.st" || complain "nothing was saved elsewhere"
  expect 0 train "$model" --steps 3 -q --resume "$work/instead.st"
fi
expect 6 train "$model" --resume "$work/none.st"
head -c 200 "$work/part.st" >"$work/cut.st"
expect 3 train "$model" --resume "$work/cut.st"
err "cut.st"
sed 's/unit = 24/unit = 25/' "$model" >"$work/other.ini"
expect 3 train "$work/other.ini" --resume "$work/part.st"
err "in the file and"
sed 's/rate = 0.01/rate = 1e38/; s/= adam/= sgd/; s/: adam/: sgd/' "$model" >"$work/wild.ini"
expect 8 train "$work/wild.ini" -q --save "$work/wild.st"
err "step 2 diverged: the loss is not finite; the first layer whose output is not finite is norm; a smaller learning rate"
err "the last finite weights were saved to"
expect 0 train "$model" -q --weights "$work/wild.st" --steps 1
printf '\377\377\377\177' | dd of="$work/weights.st" bs=1 seek=$(($(wc -c <"$work/weights.st") - 4)) conv=notrunc 2>"$work/none"
expect 3 train "$model" -q --weights "$work/weights.st"
err "weights.st: out.bias: the file is damaged"
# The same NaN in a file of a program that writes no checksums.
LC_ALL=C sed 's/"version":"2"/"version":"1"/; s/remat_checksum/other_checksum/; s/remat_tensor/other_tensor/' \
  "$work/weights.st" >"$work/nan.st"
expect 8 train "$model" -q --weights "$work/nan.st"
err "step 1 diverged: the loss is not finite; the first layer whose output is not finite is out; the data or the weights may hold NaN"

# The smallest budget is named, and it is enough.
least=$("$REMAT" train "$model" -j 1 --budget 1KiB 2>&1 | sed 's/.*found takes \([0-9,]*\) bytes.*/\1/; s/,//g')
expect 0 train "$model" -j 1 --budget "$least" --save "$work/tight.st" -q
cmp "$work/whole.st" "$work/tight.st" || complain "the smallest budget gives other bits"
# Logs and traces that cannot be written are warnings; the weights are saved.
if [ -w /dev/full ]; then
  rm -f "$work/kept.st"
  expect 0 train "$model" --steps 2 -q --save "$work/kept.st" --log /dev/full --trace /dev/full
  err "remat: warning: /dev/full: writing failed"
  [ -s "$work/kept.st" ] || complain "a full log cost the weights"
fi
# A pipe that nobody reads is refused at once.
mkfifo "$work/pipe"
for option in --log --trace --save; do
  expect 6 train "$model" --steps 1 -q $option "$work/pipe"
  err "$work/pipe"
done
rm -f "$(sed -n 's/^remat: the training was saved to \(.*\) instead$/\1/p' "$work/err")"
# A closed standard error is not the log; a closed or full standard output is noticed, also by --help.
"$REMAT" train "$model" --steps 2 --log "$work/closed.jsonl" 2>&- >"$work/out" || complain "stderr closed: exit $?"
! grep -v '^{' "$work/closed.jsonl" || complain "progress in the log"
for words in "--help" "train --help" "version" "layers"; do
  code=0
  # shellcheck disable=SC2086
  "$REMAT" $words >&- 2>"$work/err" || code=$?
  [ $code = 6 ] || complain "$words with a closed stdout: exit $code"
  if [ -w /dev/full ]; then
    code=0
    # shellcheck disable=SC2086
    "$REMAT" $words >/dev/full 2>"$work/err" || code=$?
    [ $code = 6 ] || complain "$words on a full disk: exit $code"
  fi
done
# A second Ctrl-C ends at once, even where a step never ends: here it waits for a reader of its log that does not read. The second
# comes when the first was taken, which clears SIGINT's bit of the signals that the process handles.
mkfifo "$work/stalled"
"$REMAT" train "$model" --steps 100000000 -q -j 1 --log "$work/stalled" 2>"$work/err" &
process=$!
handles_interrupts() { grep -q '^SigCgt:.*[2367abef]$' "/proc/$process/status" 2>"$work/none"; }
exec 9<"$work/stalled"
until handles_interrupts; do sleep 0.05; done
asleep=0 # five looks in a row: then the pipe is full
while [ $asleep -lt 5 ]; do
  sleep 0.1
  if grep -q '^State:.S' "/proc/$process/status"; then asleep=$((asleep + 1)); else asleep=0; fi
done
kill -INT $process
while handles_interrupts; do sleep 0.05; done
sleep 0.2
kill -0 $process 2>"$work/none" || complain "the first Ctrl-C ended a step that had not ended"
kill -INT $process
code=0
wait $process || code=$?
exec 9<&-
[ $code = 130 ] || complain "a second Ctrl-C: exit $code"
# SIGHUP saves first. A reader of the output that goes away, or a limit on the size of files, costs no weights.
rm -f "$work/hung.st"
"$REMAT" train "$model" --steps 100000000 -q -j 1 --save "$work/hung.st" --log "$work/hung.jsonl" 2>"$work/err" &
process=$!
while kill -0 $process 2>/dev/null && [ "$(wc -l 2>/dev/null <"$work/hung.jsonl" || echo 0)" -lt 3 ]; do sleep 0.1; done
kill -HUP $process
code=0
wait $process || code=$?
[ $code = 129 ] || complain "SIGHUP: exit $code"
[ -s "$work/hung.st" ] || complain "SIGHUP cost the weights"
rm -f "$work/piped.st"
"$REMAT" train "$model" --steps 20 --save "$work/piped.st" --log /dev/stdout 2>"$work/err" | head -n 1 >"$work/out"
[ -s "$work/piped.st" ] || complain "a closed pipe cost the weights"
# (the shell's limit counts blocks of 512 or 1024 bytes)
(ulimit -f 1 && "$REMAT" train "$model" --steps 200 -q --log "$work/long.jsonl" 2>"$work/err") || complain "SIGXFSZ: exit $?"
err "warning: $work/long.jsonl: writing failed"
# A save during the run that fails is a warning; the training goes on and is saved elsewhere at the end.
if [ -w /dev/full ]; then
  expect 6 train "$model" --steps 3 -q --save /dev/full --save-every 1
  err "remat: warning: /dev/full: writing failed"
  err "the training goes on"
  instead=$(sed -n 's/^remat: the training was saved to \(.*\) instead$/\1/p' "$work/err")
  expect 0 train "$model" --steps 4 -q --resume "$instead"
  rm -f "$instead"
fi
# An output that is also an input, or another output, is refused before anything is written.
cp "$model" "$work/own.ini"
for option in --save --log --trace; do
  expect 6 train "$work/own.ini" --steps 1 -q $option "$work/own.ini"
  err "$work/own.ini: cannot be written: it is also read"
done
cmp -s "$model" "$work/own.ini" || complain "the model was overwritten"
expect 6 train "$model" --steps 1 -q --save "$work/both" --log "$work/both"
err "two outputs would be written to it"
[ ! -e "$work/both" ] || complain "two outputs to one file are noticed late"
expect 0 train "$model" --steps 2 -q --save "$work/on.st"
expect 0 train "$model" --steps 3 -q --resume "$work/on.st" --save "$work/on.st"
expect 6 train "$model" --steps 4 -q --resume "$work/on.st" --log "$work/on.st"
finish
