#!/bin/sh
# What the README shows is what happens.
. tests/cli/support/expect.sh

# The commands of the first plan, with this build's program, and the table below them.
mkdir "$work/build"
ln -s "$(realpath "$REMAT")" "$work/build/remat"
ln -s "$PWD/examples" "$work/examples"
sed -n '/^## A first plan/,/^`remat plan` prints/s/^    //p' README.md | grep '^build/remat' >"$work/commands"
[ "$(wc -l <"$work/commands")" = 4 ] || complain "the README has other commands than this test knows"
(cd "$work" && sh -e commands >all.out) || complain "a command of the README fails"
sed -n '/^`remat plan` prints/,/^`remat sweep`/p' README.md | sed '1,2d;$d' | sed 's/^    //' >"$work/shown"
"$REMAT" plan examples/transformer.json --budget 6KiB >"$work/printed"
diff -B "$work/shown" "$work/printed" || complain "the README shows another table"

# The C program stands in the README as it is in examples/.
sed -n '/^## A first C program/,/^    cc /p' README.md | sed '1,2d;$d' | sed 's/^    //' >"$work/program"
diff -B "$work/program" examples/first_plan.c || complain "the README shows another program"

# It compiles against the library and runs. Sanitized libraries would need their runtime: the plain build does it.
if [ "$REMAT_SANITIZE" != ON ]; then
  cc examples/first_plan.c -Iinclude "$REMAT_LIBRARY" -fopenmp -lm -o "$work/first_plan" || complain "it does not compile"
  "$work/first_plan" | grep -q 'layer 23: keep' || complain "it does not run"
fi
finish
