#!/bin/sh
# --set SECTION.KEY=VALUE, on every command that takes a model.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini
expect 0 train "$model" --steps 20 --save "$work/w.st" -q
for command in train eval predict convert fit profile bench summary plan sweep report; do
  case $command in
    train) set -- -q --steps 1 ;;
    eval | predict) set -- --weights "$work/w.st" --batch 10 ;;
    convert) set -- --weights "$work/w.st" --output "$work/w.pt" ;;
    report) set -- -o "$work/page.html" ;;
    profile) set -- -o "$work/profile.json" --repeats 1 ;;
    bench) set -- --steps 1 ;;
    *) set -- ;;
  esac
  expect 0 $command "$model" "$@" --set model.seed=3
  expect 2 $command "$model" "$@" --set model.sead=3
  err "sead: [Model] has no such property; did you mean seed?"
  expect 2 $command "$model" "$@" --set modal.seed=3
  err "has no section 'modal'; did you mean 'Model'?"
  expect 2 $command "$model" "$@" --set seed=3
  err "write SECTION.KEY=VALUE"
done
byte_model
expect 0 train "$work/bytes.ini" --steps 1 --save "$work/bytes.st" -q
expect 0 generate "$work/bytes.ini" --weights "$work/bytes.st" --prompt ab --count 3 --set model.seed=3
expect 2 generate "$work/bytes.ini" --weights "$work/bytes.st" --prompt ab --set model.sead=3
err "did you mean seed?"
# An error names the setting that is wrong, not a line of the file.
for setting in model.batch_size=abc fc1.unit=0 fc1.type=fuly_connected loss.input_layers=lost fc1.lost=1 optimizer.type=adm \
  lost.unit=3; do
  expect 2 summary "$model" --set model.seed=3 --set $setting --set model.name=x
  err "--set $setting: "
  ! grep -q 'ini:[0-9]' "$work/err" || complain "a line of the file is blamed for --set: $(cat "$work/err")"
done
expect 2 summary examples/models/convnet.ini --set pool1.pool_size=99
err "--set pool1.pool_size=99: layer 'pool1': pooling2d: a window of height 99 does not fit"
# What the file says wrong is still told with its line.
sed 's/^unit = 2$/unit = -1/' "$model" >"$work/wrong.ini"
expect 3 summary "$work/wrong.ini" --set fc1.unit=33
err "wrong.ini:25: layer 'out': unit: '-1'"
expect 0 summary "$model" --set fc1.unit=33
out "1:1:33"
# It is the same as the key in the file.
sed 's/^epochs.*/epochs = 2/; s/^learning_rate.*/learning_rate = 0.02/' "$model" >"$work/changed.ini"
expect 0 train "$work/changed.ini" --save "$work/a.st" -q
expect 0 train "$model" --set model.epochs=2 --set Optimizer.learning-rate=0.02 --save "$work/b.st" -q
cmp "$work/a.st" "$work/b.st" || complain "--set is not the same as the key in the file"
printf 'index,type,activation_bytes,recompute_flops\n0,other,64,100\n' >"$work/profile.csv"
expect 2 plan "$work/profile.csv" --set model.seed=3
err "--set changes a model"
finish
