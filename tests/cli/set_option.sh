#!/bin/sh
# --set SECTION.KEY=VALUE, on every command that takes a model.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
model=$work/spirals.ini
expect 0 train "$model" --steps 20 --save "$work/w.st" -q
for command in train eval predict fit profile bench summary plan sweep report; do
  case $command in
    train) set -- -q --steps 1 ;;
    eval | predict) set -- --weights "$work/w.st" --batch 10 ;;
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
