#!/bin/sh
# `remat train` within a budget: never more than that, the same bits, and the truth at the end.
. tests/cli/support/expect.sh
model=examples/models/resnet.ini

number() { grep -o "\"$1\": [0-9.e+-]*" "$work/out" | head -1 | sed 's/.*: //'; }

expect 0 train $model --strategy none --steps 3 --json --quiet
loss=$(number last_loss)
silent err
[ "$(number forwards_run)" = "$(number forwards)" ] || complain "forwards are not as predicted"
for budget in 7700000 8MiB 9MiB 10MB 20MiB; do
  expect 0 train $model --budget $budget --steps 3 --json --quiet
  [ "$(number last_loss)" = "$loss" ] || complain "another loss at $budget"
  [ "$(number allocated_bytes)" -le "$(number total_budget_bytes)" ] || complain "$budget is exceeded"
  [ "$(number allocated_bytes)" = "$(number total_bytes)" ] || complain "not as predicted at $budget"
  [ "$(number forwards_run)" = "$(number forwards)" ] || complain "forwards are not as predicted at $budget"
done
if has_python; then
  python3 -m json.tool "$work/out" >/dev/null || complain "the JSON is wrong"
fi
expect 4 train $model --budget 5MiB
err "too small: the smallest plan that was found takes"
err "no plan takes less than"
# Where the smallest plan is proven to be the smallest, its figure is printed once.
expect 4 train examples/models/mlp.ini --budget 8MiB
err "no plan takes less; the peak"
least=$(sed -n 's/.*found takes \([0-9,]*\) bytes.*/\1/p' "$work/err")
[ "$(grep -o "$least" "$work/err" | wc -l)" = 1 ] || complain "the same figure is printed twice: $(cat "$work/err")"

# The process takes little besides: within 5 % + 16 MiB of what was planned. A sanitizer has memory of its own.
if [ "${REMAT_SANITIZE:-OFF}" != ON ]; then
  for budget in 9MiB 1GiB; do
    expect 0 train $model --budget $budget --steps 3 --json --quiet
    total=$(number total_bytes) resident=$(number peak_resident_bytes)
    [ "$resident" -le $((total + total / 20 + 16777216)) ] || complain "$resident bytes resident for $total planned"
  done
fi

# The closing lines.
expect 0 train $model --budget 9MiB --steps 3
err "predicted        measured"
err "bytes for tensors"
err "of it the program itself"
err "no profile: predicted times are relative"
err "layers run forward for a batch"
err "saved ("
expect 0 train $model --budget 1GiB --steps 1
err "note: everything is kept, nothing is recomputed"
expect 0 profile $model --repeats 1 -o "$work/costs.json"
expect 0 train $model --budget 9MiB --profile "$work/costs.json" --steps 3
grep -q '^step time .* ms .* ms  [+-]' "$work/err" || complain "no predicted step time: $(cat "$work/err")"

# About twenty lines of progress however long it is.
expect 0 train examples/models/mlp.ini --steps 90 --batch 1 --threads 1
lines=$(grep -c '^step [0-9]*/90' "$work/err")
if [ "$lines" -lt 15 ] || [ "$lines" -gt 22 ]; then complain "$lines lines of progress"; fi

# The largest batch for a budget; no larger than the data.
expect 0 train $model --budget 9MiB --batch largest --steps 1 --json --quiet
batch=$(number batch)
[ "$(number allocated_bytes)" -le 9437184 ] || complain "the largest batch is too large"
expect 4 train $model --budget 9MiB --batch $((batch + 1)) --steps 1 --quiet
expect 0 train examples/models/mlp.ini --budget 1GiB --batch auto --steps 1 --json --quiet
[ "$(number batch)" = 1024 ] || complain "a batch of $(number batch) from 1024 samples"
expect 0 train examples/models/mlp.ini --budget 1GiB --batch auto --steps 1
grep -q "^batch 1024: the budget allows [0-9]*, the [a-z]* data has 1024$" "$work/err" || complain "no reason for 1024: $(head -3 "$work/err")"
expect 0 train $model --budget 9MiB --batch largest --steps 1
err "batch $batch: the budget allows no more"
# The fastest batch is smaller.
expect 0 train $model --budget 9MiB --batch auto --steps 1 --json
[ "$(number batch)" -lt "$batch" ] || complain "the fastest batch is the largest, $batch"
err "batch $(number batch): the fastest by the plan's prediction; the budget allows $batch, which recomputes more"
expect 2 train $model --batch auto
expect 2 train $model --batch some

# Early stopping needs something to stop by.
sed 's/^validation_split.*//; s/^epochs.*/&\nearly_stopping = 2/' $model >"$work/early.ini"
expect 2 train "$work/early.ini"
err "early_stopping = 2, but there is no validation data"

# A hard limit: training goes on within it, and what would pass it is refused.
expect 2 train $model --memory-limit hard --steps 1
err "needs a budget"
expect 2 train $model --memory-limit soft
if [ -r /proc/self/status ] && [ "${REMAT_SANITIZE:-}" != ON ]; then
  expect 0 train $model --budget 9MiB --memory-limit hard --steps 2 --json --quiet
  awk 'BEGIN { for (i = 0; i < 60000; i++) { for (j = 0; j < 64; j++) printf "1,"; print 0 } }' >"$work/data.csv"
  cat >"$work/data.ini" <<'INI'
[Model]
batch_size = 4
budget = 4MiB
[Dataset]
Type = csv
inputs = data.csv
[in]
Type = input
input_shape = 64
[fc]
Type = fully_connected
unit = 2
[loss]
Type = cross_entropy
INI
  expect 0 train "$work/data.ini" --steps 1 --threads 1 --quiet
  expect 5 train "$work/data.ini" --steps 1 --threads 1 --quiet --memory-limit hard
  err "out of memory"
  # Under a limit of the system in which keeping all fails, a budget trains.
  # shellcheck disable=SC3045 # dash and bash have -d
  limited() { (ulimit -d 25000 && exec "$REMAT" train examples/models/gpt.ini --steps 1 --threads 1 --quiet "$@") 2>"$work/err"; }
  # shellcheck disable=SC3045
  if (ulimit -d 25000) 2>/dev/null; then
    code=0; limited --strategy none || code=$?
    [ $code = 5 ] || complain "keeping all under 25 MB: exit code $code"
    limited --budget 12MiB || complain "12 MiB under 25 MB: exit code $?"
  fi
fi

# A tensor of an absurd size: the layer and its line are named. (No address space has room for the first one. A sanitized
# program ends there.)
absurd() { # SHAPE UNIT: a model
  printf '[Dataset : random]\nsamples = 2\n\n[in : input]\ninput_shape = %s\n\n[fc : fully_connected]\nunit = %s\n[loss : mse]\n' "$1" "$2"
}
if [ "$REMAT_SANITIZE" != ON ]; then
  absurd 1000000 100000000 >"$work/absurd.ini"
  expect 5 train "$work/absurd.ini" --steps 1
  err "absurd.ini:7: layer 'fc': its weight alone takes 364 TiB; check its sizes (out of memory"
fi
absurd 1000000:1000000:1000000 9 >"$work/absurd.ini"
expect 2 train "$work/absurd.ini" --steps 1
err "absurd.ini:4: layer 'in': its output alone takes"
finish
