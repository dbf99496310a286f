#!/bin/sh
# No command writes over a file that it reads: the model, its data, or another output.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
spiral_model
byte_model
root=$PWD
cd "$work" || exit 1
model=spirals.ini
cp spirals.csv data.csv
cp spirals.ini model.ini
mkdir here

# kept FILE ORIGINAL: nothing was written to it.
kept() { cmp -s "$1" "$2" || complain "$1 was overwritten"; }

# The data of the model, under any name, and also where only --set or --data names it.
ln data.csv second.csv
ln -s spirals.csv link.csv
for option in --save --save-best --log --trace; do
  for path in spirals.csv here/../spirals.csv link.csv; do
    expect 6 train $model --steps 1 -q $option $path
    err "$path: cannot be written: the model's [Dataset] reads it"
    kept spirals.csv data.csv
  done
  expect 6 train $model --steps 1 -q --set dataset.inputs=data.csv $option second.csv
  err "second.csv: cannot be written"
  expect 6 train $model --steps 1 -q --data data.csv $option second.csv
  err "second.csv: cannot be written: it is also read"
  kept data.csv spirals.csv
done
# Of several files with a pattern, each.
mkdir texts
cp abc.txt texts/one.txt
cp abc.txt texts/two.txt
expect 6 train bytes.ini --steps 1 -q --set 'dataset.inputs=texts/*.txt' --log texts/two.txt
err "texts/two.txt: cannot be written: the model's [Dataset] reads it"
kept texts/two.txt abc.txt
# A pattern that matches nothing is told as that.
expect 6 train bytes.ini --steps 1 -q --set 'dataset.inputs=none/*.txt' --log texts/two.txt
err "no file matches"
# The number of label columns of a table is no file.
touch ./1
expect 0 train $model --steps 1 -q --log 1
[ -s 1 ] || complain "there is no log"

# Training, and outputs beside the data, still work.
expect 0 train $model --steps 2 -q --save weights.st --log spirals.csv.jsonl
cp weights.st before.st

# The other commands.
expect 6 profile $model --repeats 1 -o $model
err "$model: cannot be written: it is also read"
expect 6 profile $model --repeats 1 -o spirals.csv
err "spirals.csv: cannot be written"
expect 6 report $model -o $model
err "$model: cannot be written: it is also read"
expect 6 report $model -o spirals.csv
err "spirals.csv: cannot be written"
for output in -o --profile-out --graph-out --graph-plan; do
  expect 6 plan $model --strategy none $output $model
  err "$model: cannot be written: it is also read"
  expect 6 plan $model --strategy none $output spirals.csv
  err "spirals.csv: cannot be written"
done
expect 6 plan $model --strategy none -o new.json --graph-out ./new.json
err "two outputs would be written to it"
[ ! -e new.json ] || complain "two outputs to one file are noticed late"
expect 6 eval $model --weights weights.st -o weights.st
err "weights.st: cannot be written: it is also read"
expect 6 eval $model --weights weights.st -o spirals.csv
expect 6 predict $model --weights weights.st --data data.csv -o data.csv
expect 6 predict $model --weights weights.st -o spirals.csv
expect 6 convert $model --weights weights.st -o weights.st
expect 6 tokenizer train abc.txt --vocab 260 -o abc.txt
err "abc.txt: cannot be written: it is also read"
kept $model model.ini
kept spirals.csv data.csv
kept weights.st before.st
kept abc.txt texts/one.txt
# The files of a model that is a folder. A training that is saved there goes on in its own file.
cp -r "$root/tests/reference/pretrained/gpt2" folder
small="--set dataset.type=random --set dataset.samples=8 --set model.batch_size=2 --length 12 --strategy none -q -j 1"
for option in --save --save-best --log --trace; do
  for name in config.json model.safetensors; do
    # shellcheck disable=SC2086
    expect 6 train folder $small --steps 1 $option folder/$name
    err "folder/$name: cannot be written: it is a file of the model"
    kept folder/$name "$root/tests/reference/pretrained/gpt2/$name"
  done
done
for name in adapter_config.json adapter_model.safetensors; do
  # shellcheck disable=SC2086
  expect 6 train folder --adapter folder/adapter $small --steps 1 --log folder/adapter/$name
  err "folder/adapter/$name: cannot be written: it is a file of the adapters"
  kept folder/adapter/$name "$root/tests/reference/pretrained/gpt2/adapter/$name"
done
for _ in 1 2; do
  # shellcheck disable=SC2086
  expect 0 train folder $small --steps 1 --save folder/training.safetensors
done
# Two outputs in one file that does not exist yet, however its folder is written.
expect 6 train $model --steps 1 -q --save both.st --log here/../both.st
err "two outputs would be written to it"
[ ! -e both.st ] || complain "two outputs to one file are noticed late"

# A limit on the size of files is told by every command, and nothing is left behind. (the shell counts blocks of 512 or 1024 bytes)
little=$work/little
mkdir "$little"
limited() {
  code=0
  (ulimit -f 1 && "$REMAT" "$@" >"$little/out" 2>"$work/err") || code=$?
  [ $code = 6 ] || complain "remat $* with a limit on files: exit $code"
  err "File too large"
  rm -f "$little/out"
  [ -z "$(ls -A "$little")" ] || complain "remat $* leaves $(ls -A "$little")"
}
limited report $model -o "$little/page.html"
limited report $model
limited plan $model --strategy none -o "$little/plan.json"
limited predict $model --weights weights.st -o "$little/table.csv"
limited convert $model --weights weights.st -o "$little/theirs.pt"
limited tokenizer train spirals.csv --vocab 400 -o "$little/tokenizer.json"

# A training that was saved elsewhere is not replaced by one with the same process id, as containers have it.
if [ -w /dev/full ]; then
  : >kept.txt
  code=0
  REMAT=$REMAT sh -c 'echo earlier >"remat-$$-full"; echo $$ >kept.txt
    exec "$REMAT" train spirals.ini --steps 1 -q --save /dev/full' 2>"$work/err" || code=$?
  [ $code = 6 ] || complain "a full disk: exit $code"
  process=$(cat kept.txt)
  [ "$(cat "remat-$process-full")" = earlier ] || complain "the earlier training was replaced"
  err "saved to ./remat-$process-2-full instead"
  expect 0 train $model --resume "remat-$process-2-full" --steps 2 -q
fi
finish
