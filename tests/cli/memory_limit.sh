#!/bin/sh
# `remat train --memory-limit hard`: where a budget works, it works with the limit too, and the process stays within it.
. tests/cli/support/expect.sh
if [ ! -r /proc/self/status ] || [ "${REMAT_SANITIZE:-}" = ON ]; then
  echo "there is no /proc/self/status, or a sanitizer has memory of its own"
  exit 77
fi

number() { grep -o "\"$1\": [0-9]*" "$work/$2" | head -1 | sed 's/.*: //'; }

# A random model of about $2 layers; $1 is the seed.
make_model() {
  awk -v seed="$1" -v layers="$2" '
    function any(n) { return int(n * rand()) }
    BEGIN {
      srand(seed)
      split("sgd adam adamw", optimizers, " ")
      split("relu gelu tanh sigmoid", kinds, " ")
      width = 8 * (1 + any(8))
      print "[Model]\nbatch_size = " 1 + any(64) "\nepochs = 1"
      if (any(4) == 0) print "accumulate = 2"
      if (any(3) == 0) print "clip_norm = 1"
      print "[Optimizer : " optimizers[1 + any(3)] "]\n[Dataset : random]\nsamples = 256"
      print "[in : input]\ninput_shape = " width
      last = before = "in"
      for (i = 0; i < layers; i += 2) {
        print "[fc" i " : fully_connected]\nunit = " width
        print "[act" i " : activation]\nactivation = " kinds[1 + any(4)]
        last = "act" i
        if (any(6) == 0) print "[" (last = "norm" i) " : layer_normalization]"
        if (any(8) == 0) print "[" (last = "drop" i) " : dropout]\nrate = 0.1"
        if (any(4) == 0) { print "[sum" i " : addition]\ninput_layers = " last ", " before; last = "sum" i }
        before = last
      }
      print "[loss : mse]"
    }'
}

# Trains at a budget without and with the limit.
compare() {
  expect 0 train "$1" --budget "$2" --steps 2 --threads 2 --json --quiet
  loss=$(number last_loss out)
  expect 0 train "$1" --budget "$2" --steps 2 --threads 2 --json --quiet --memory-limit hard
  [ "$(number last_loss out)" = "$loss" ] || complain "$1 at $2: another loss with a limit"
  # What is resident and not data is the program's code.
  [ "$(number peak_resident_bytes out)" -le $(($(number memory_limit_bytes out) + 8388608)) ] ||
    complain "$1 at $2: $(number peak_resident_bytes out) bytes are resident"
}

# The budgets: the least one, and one in the middle.
compare_all() {
  code=0; "$REMAT" plan "$1" --threads 2 --budget 1 --json >"$work/least" 2>/dev/null || code=$?
  [ $code = 4 ] || complain "$1 is planned in one byte: exit code $code"
  "$REMAT" plan "$1" --threads 2 --strategy none --json --no-schedule >"$work/most" 2>/dev/null || complain "$1 is not planned"
  least=$(number min_budget_bytes least) most=$(number total_bytes most)
  compare "$1" "$least"
  compare "$1" $(((least + most) / 2))
}

seed=0
for layers in 5 9 16 24; do
  seed=$((seed + 1))
  make_model $seed $layers >"$work/$seed.ini"
  compare_all "$work/$seed.ini"
done

# A deep one, whose tables are larger than its tensors; with a trace too.
make_model 99 400 >"$work/deep.ini"
compare "$work/deep.ini" 8MB
expect 0 train "$work/deep.ini" --budget 8MB --threads 2 --steps 2 --quiet --memory-limit hard --trace "$work/trace.json"
expect 0 train "$work/1.ini" --budget 64MiB --batch auto --steps 1 --memory-limit hard
err "the system limits the data of the process to"

# What the process held before it became this program is not what the program holds.
if command -v perl >/dev/null 2>&1; then
  # shellcheck disable=SC2016 # Perl's variables
  perl -e '$held = "x" x 300000000; exec @ARGV' "$REMAT" train "$work/1.ini" --steps 2 --threads 1 --json --quiet >"$work/out" 2>"$work/err" ||
    complain "a training that a large process starts fails"
  resident=$(number peak_resident_bytes out)
  if [ "$resident" -lt 1000000 ] || [ "$resident" -gt 150000000 ]; then complain "$resident bytes are resident, they say"; fi
else
  part_skipped "perl is not installed"
fi
finish
