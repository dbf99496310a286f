#!/bin/sh
# Optimizer states in 16 and 8 bits against fp32: the validation loss of a small GPT after STEPS steps (1000), for SEEDS seeds (5). Fails
# where a seed is more than 0.3 % off that of fp32 states, above or below. Takes minutes. The text is made of the words of the license:
# each is followed by one that follows it there. It is the same on every machine and in every version.
# usage: scripts/compare_states.sh [PROGRAM]        (default: build/remat)
set -eu
remat=${1:-build/remat}
[ -x "$remat" ] || { echo "compare_states: there is no program '$remat'; build it, or name it: $0 PROGRAM" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=${STEPS:-1000}
tr -s ' \t\n' '\n' <LICENSE | awk 'NF { word[count++] = $1 }
  function random(below) { state = state * 16807 % 2147483647; return int(state * below / 2147483647) }
  END {
    for (i = 0; i + 1 < count; i++) follows[word[i], times[word[i]]++] = i + 1
    state = 1; at = 0
    for (n = 0; n < 60000; n++) {
      line = line word[at] " "
      if (length(line) > 70) { print line; line = "" }
      at = word[at] in times ? follows[word[at], random(times[word[at]])] : 0
    }
  }' >"$work/text.txt"
sed "s|^inputs = .*|inputs = $work/text.txt|; /^validation_inputs/d; s/^count = 4/count = 1/; s/1:1:210/1:1:32/
s/positions = 210/positions = 32/; s/^batch_size.*/batch_size = 8/; s/^epochs.*/epochs = 100/
s/^learning_rate.*/learning_rate = 0.002/; s/^min_rate.*/min_rate = 0/
s/^validation_every.*/validation_every = $steps\\nvalidation_split = 0.15/" examples/models/gpt.ini >"$work/gpt.ini"
seed=1
while [ "$seed" -le "${SEEDS:-5}" ]; do
  for state in fp32 bf16 int8; do
    loss=$("$remat" train "$work/gpt.ini" --set "optimizer.state=$state" --set "model.seed=$seed" --steps "$steps" --json -q |
      sed -n 's/.*"best_validation_loss": \([0-9.e+-]*\).*/\1/p')
    echo "$seed $state $loss"
  done
  seed=$((seed + 1))
done | tee "$work/losses"
awk '{ of[$1, $2] = $3; if ($1 > seeds) seeds = $1 }
  END {
    for (i = 1; i <= 2; i++) {
      state = i == 1 ? "bf16" : "int8"
      for (s = 1; s <= seeds; s++) {
        apart = of[s, state] / of[s, "fp32"] - 1
        wrong = apart > 0.003 || apart < -0.003
        printf "%s, seed %d: %.5f, fp32 %.5f: %+.3f %%%s\n", state, s, of[s, state], of[s, "fp32"], 100 * apart,
          wrong ? ", more than 0.3 %" : ""
        if (wrong) failed = 1
      }
    }
    exit failed
  }' "$work/losses"
