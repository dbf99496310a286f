#!/bin/sh
# Text with patterns of files, random windows and a tail for validation: the same bits on every way.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
byte_model
mkdir "$work/texts"
cp "$work/abc.txt" "$work/texts/a.txt"
tr abc bca <"$work/abc.txt" >"$work/texts/b.txt"
sed 's|inputs = abc.txt|inputs = texts/*.txt\nwindows = random\nvalidation_split = 0.2|' "$work/bytes.ini" >"$work/random.ini"
expect 0 train "$work/random.ini" --set model.epochs=2 --save "$work/whole.st" --log "$work/log" -q
grep -q validation_loss "$work/log" || complain "the tail is not validated on"
expect 0 train "$work/random.ini" --set model.epochs=2 --steps 15 --save "$work/half.st" -q
expect 0 train "$work/random.ini" --set model.epochs=2 --resume "$work/half.st" --save "$work/resumed.st" -q
cmp "$work/whole.st" "$work/resumed.st" || complain "a resumed training draws other windows"
expect 0 train "$work/random.ini" --set model.epochs=2 --strategy full -j 1 --save "$work/full.st" -q
cmp "$work/whole.st" "$work/full.st" || complain "another plan gives other weights"
expect 0 train "$work/random.ini" --set model.epochs=2 --set dataset.windows=fixed --save "$work/fixed.st" -q
! cmp -s "$work/whole.st" "$work/fixed.st" || complain "random windows are the fixed ones"
expect 0 eval "$work/random.ini" -w "$work/whole.st"
out "perplexity"
expect 0 eval "$work/random.ini" -w "$work/whole.st" --data "$work/texts/*.txt"
expect 6 train "$work/random.ini" --set 'dataset.inputs=texts/*.md' -q
err "no file matches"
finish
