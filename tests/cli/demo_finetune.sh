#!/bin/sh
# The demo of fine-tuning, with a few sources and two steps: all its commands work, and what it says is there is there.
. tests/cli/support/expect.sh
if [ ! -r /proc/self/status ] || [ "${REMAT_SANITIZE:-}" = ON ]; then
  echo "there is no /proc/self/status, or a sanitizer has memory of its own"
  exit 77
fi
export OMP_NUM_THREADS=1
STEPS=2 TASK_STEPS=2 WIDTH=64 SOURCES=src/base QUESTIONS=3 scripts/demo_finetune.sh "$REMAT" "$work/demo" >"$work/out" 2>"$work/err" ||
  complain "it fails: $(tail -n 3 "$work/err")"
for name in base/config.json base/tokenizer.json base/model.safetensors adapter/adapter_config.json \
  adapter/adapter_model.safetensors; do
  [ -s "$work/demo/$name" ] || complain "there is no $name"
done
[ "$(grep -c perplexity "$work/out")" = 2 ] || complain "it evaluates another number of times"
out "/* It returns"
[ "$(wc -l <"$work/demo/questions")" = 3 ] || complain "there are other questions: $(cat "$work/demo/questions")"
[ "$(wc -l <"$work/demo/after")" = 3 ] || complain "there are other answers: $(cat "$work/demo/after")"
grep -q "^== Right answers to 3 questions: [0-3] before, [0-3] with the adapter; " "$work/out" || complain "the answers are not counted"
while IFS='	' read -r function type; do # a question is not learned
  ! grep -qF "$function\n" "$work/demo/learned.jsonl" || complain "it learns what it asks: $function, $type"
done <"$work/demo/questions"
finish
