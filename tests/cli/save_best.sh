#!/bin/sh
# What is left of a training: the best weights, which step they are of, and how to go on. Changed settings are told.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini

# Far too high a rate: the loss of the validations soon stops falling. The last validation is not the best one.
sed 's/^epochs.*/epochs = 40\nearly_stopping = 3/; s/rate = 0.01/rate = 0.3/' "$model" >"$work/early.ini"
expect 0 train "$work/early.ini" --save "$work/early.st" --log "$work/early.jsonl"
err "stopped early"
step=$(sed -n 's/^best validation: step \([0-9]*\), loss .*; .*early.st has these weights$/\1/p' "$work/err")
[ -n "$step" ] || complain "the best step is not named: $(tail -n 4 "$work/err")"
tail -n 1 "$work/early.jsonl" | grep -q "\"best_step\": $step" || complain "the log names another best step"
last=$(sed -n 's/^{"step": \([0-9]*\), "epoch".*/\1/p' "$work/early.jsonl" | tail -n 1)
[ "$last" -gt "$step" ] || complain "the best step, $step, is the last one: this test shows nothing"
[ ! -e "$work/early.best.st" ] || complain "the file of the best weights was left behind"
# These are the weights of that step, to the bit.
expect 0 train "$work/early.ini" --steps "$step" --weights-only --save "$work/step.st" -q
expect 0 train "$work/early.ini" --weights-only --save "$work/early_weights.st" -q --json
out "\"best_step\": $step, \"restored_best\": true"
cmp "$work/step.st" "$work/early_weights.st" || complain "the weights are not those of the best step"

# The same after a pause: the file of the best weights is found again.
expect 0 train "$work/early.ini" --steps "$((step + 16))" --save "$work/paused.st"
err "best validation: step $step"
err "these weights are in $work/paused.best.st"
expect 0 train "$work/early.ini" --resume "$work/paused.st" --save "$work/paused.st"
err "best validation: step $step, loss "
cmp "$work/early.st" "$work/paused.st" || complain "a training with a pause keeps other weights"
# Where that file is gone, the last weights stay and this is told.
expect 0 train "$work/early.ini" --steps "$((step + 16))" --save "$work/paused.st" -q
rm "$work/paused.best.st"
expect 0 train "$work/early.ini" --resume "$work/paused.st" --save "$work/other.st"
err "warning: the weights of step $step, the best, are not in $work/other.best.st"

# --save-best works without early stopping, and the training goes on to its end.
sed 's/rate = 0.01/rate = 0.3/' "$model" >"$work/high.ini"
expect 0 train "$work/high.ini" --save-best "$work/best.st" --log "$work/high.jsonl"
step=$(sed -n "s|^best validation: step \([0-9]*\), loss .*; these weights are in $work/best.st\$|\1|p" "$work/err")
least=$(sed -n 's/.*"step": \([0-9]*\), "validation_loss": \([0-9.e-]*\),.*/\2 \1/p' "$work/high.jsonl" | sort -g | head -n 1)
[ "${least#* }" = "$step" ] || complain "step $step is not the best: $least"
expect 0 train "$work/high.ini" --steps "$step" --save "$work/until.st" -q
expect 0 eval "$work/high.ini" -w "$work/until.st" --json
mv "$work/out" "$work/until.json"
expect 0 eval "$work/high.ini" -w "$work/best.st" --json
cmp "$work/out" "$work/until.json" || complain "--save-best has other weights"
expect 6 train "$model" --save-best "$work/no/folder.st"
err "cannot be written"
expect 6 train "$model" --save "$work/same.st" --save-best "$work/same.st"
err "two outputs would be written to it"

# What to type to go on: the same command, and it works.
cp "$model" "$work/my model.ini"
expect 0 train "$work/my model.ini" --steps 5 --batch=10 --seed 3 --save "$work/part.st"
grep -A 1 "^saved $work/part.st; train longer with" "$work/err" | sed -n 2p >"$work/command"
grep -qF -- "remat train --batch=10 '$work/my model.ini' --steps 10 --resume $work/part.st --save $work/part.st" "$work/command" ||
  grep -qF -- "remat train '$work/my model.ini' --batch=10 --steps 10 --resume $work/part.st --save $work/part.st" "$work/command" ||
  complain "the command to go on is: $(cat "$work/command")"
sed "s|remat train|\"\$REMAT\" train|" "$work/command" >"$work/again.sh"
sh "$work/again.sh" 2>"$work/err" || complain "the command to go on fails: $(cat "$work/err")"
err "5 steps"
# Names that a shell would change are quoted; what belongs to the start of the training is left out, however it is written.
expect 0 train "$model" --steps 2 --save "$work/first.st" --weights-only -q
for start in "-w $work/first.st --partial" "-w$work/first.st --parti" "--weights=$work/first.st --partial"; do
  # shellcheck disable=SC2086 # several arguments
  expect 0 train "$model" -j 1 --steps 2 $start --save "$work/it's \$HOME.st"
  grep -A 1 "; train longer with" "$work/err" | sed -n 2p >"$work/command"
  if grep -q 'first.st\|--part' "$work/command"; then complain "$start is still there: $(cat "$work/command")"; fi
  { echo "cd '$PWD' &&" && sed "s|remat train|\"\$REMAT\" train|" "$work/command"; } >"$work/again.sh"
  sh "$work/again.sh" 2>"$work/err" || complain "the command to go on fails: $(cat "$work/command" "$work/err")"
  err "2 steps"
done
# The best weights of a file without an ending, and of one in the current folder.
program=$(command -v "$REMAT")
case $program in /*) ;; *) program=$PWD/$program ;; esac
for name in plain .hidden dot.st; do
  case $name in dot.st) best=dot.best.st ;; *) best=$name.best ;; esac
  (cd "$work" && "$program" train early.ini -j 1 --steps 2 --set dataset.validation_every=1 --save $name 2>err) || complain "--save $name: $(cat "$work/err")"
  [ -e "$work/$best" ] || complain "there is no $best: $(ls -a "$work")"
done
rm -f "$work/stop.jsonl"
"$REMAT" train "$model" --steps 100000000 --save "$work/stop.st" --log "$work/stop.jsonl" -j 1 2>"$work/err" &
pid=$!
tries=0
until [ "$(grep -c '^{"step"' "$work/stop.jsonl" 2>"$work/none")" -gt 3 ] 2>"$work/none" ||
  [ $((tries += 1)) -gt 1200 ]; do sleep 0.05; done
kill -INT $pid
wait $pid || true
grep -q "^saved $work/stop.st after step [0-9]* of 100000000; go on with" "$work/err" || complain "$(tail -n 3 "$work/err")"
err "--resume $work/stop.st --save $work/stop.st"
expect 0 train "$model" --steps 2 --save "$work/w.st" --weights-only
err "saved $work/w.st"
! grep -q -- "--resume" "$work/err" || complain "weights alone cannot be resumed"

# Other settings on resume are told; the same ones are not.
sed 's/^learning_rate.*/&\nschedule = cosine/' "$model" >"$work/cosine.ini"
expect 0 train "$work/cosine.ini" --steps 8 --save "$work/c.st" -q
expect 0 train "$work/cosine.ini" --steps 8 --resume "$work/c.st" -q
silent err
expect 0 train "$work/cosine.ini" --steps 10 --resume "$work/c.st" -q
err "warning: $work/c.st: the training goes on with other settings than before: steps (until which the learning rate changes) is 10, it was 8"
expect 0 train "$model" --steps 10 --resume "$work/c.st" --set optimizer.learning_rate=0.5 -q
err "learning_rate is 0.5, it was 0.01; schedule is constant, it was cosine"
finish
