#!/bin/sh
# What the README shows is what happens.
. tests/cli/support/expect.sh

# It begins with what a bare Debian lacks.
sed -n '1,12p' README.md | grep -q '^    apt install git make ' || complain "the README does not begin with git and make"

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

# The commands on graphs.
sed -n '/^`remat sweep` shows/,/^## A first C/s/^    //p' README.md | grep '^build/remat' >"$work/graphs"
[ "$(wc -l <"$work/graphs")" -ge 2 ] || complain "the README has no commands on graphs"
(cd "$work" && sh -e graphs >graphs.out) || complain "a command on graphs fails"

# The commands of a first training, and those of the manual's first page, with fewer steps. What they print depends on the
# machine; that they work, and that the weights they hand on fit, does not. Too slow for sanitized builds.
if [ "$REMAT_SANITIZE" != ON ]; then
  sed -n '/^## A first training/,/^## A first plan/s/^    build\/remat/build\/remat/p' README.md >"$work/training"
  [ "$(wc -l <"$work/training")" = 12 ] || complain "the README has other training commands than this test knows"
  # The images need a folder of images: image_folder.sh tries that model.
  sed -n '/photos/d; s/^    remat /build\/remat /p' docs/get-started.md >>"$work/training"
  [ "$(wc -l <"$work/training")" = 21 ] || complain "docs/get-started.md has other commands than this test knows"
  sed -i 's/--steps [0-9]*/--steps 3/; s/^\(build\/remat generate.*\)/\1 --count 20/' "$work/training"
  (cd "$work" && sh -e training >training.out 2>training.err) ||
    complain "a command of a first training fails: $(tail -3 "$work/training.err")"
  grep -q 'fits into 16 MiB' "$work/training.out" || complain "fit does not say that it fits"
  grep -q '^17:45 is' "$work/training.out" || complain "generate does not go on with its prompt"
  grep -q '^loss .* accuracy' "$work/training.out" || complain "eval prints no loss"
  [ "$(sed -n 's/^5,\([a-z]*\),.*/\1/p' "$work/kinds.csv")" = cherry ] || complain "predict: $(cat "$work/kinds.csv")"
  [ -s "$work/page.html" ] || complain "there is no page"
fi

# The C program stands in the README as it is in examples/.
sed -n '/^## A first C program/,/^    cc /p' README.md | sed '1,2d;$d' | sed 's/^    //' >"$work/program"
diff -B "$work/program" examples/first_plan.c || complain "the README shows another program"

# It compiles against the library and runs. Sanitized libraries would need their runtime: the plain build does it.
if [ "$REMAT_SANITIZE" != ON ]; then
  cc examples/first_plan.c -Iinclude "$REMAT_LIBRARY" -pthread -lm -o "$work/first_plan" || complain "it does not compile"
  "$work/first_plan" | grep -q 'layer 23: keep' || complain "it does not run"
fi

# So do those that use the engine, by the line of the README: with CUDA the static library needs more than it names.
if [ "$REMAT_SANITIZE" != ON ]; then
  line=$(sed -n 's/.*needs only the library: `\(cc .*\)`.*/\1/p' README.md | sed 's/NAME/custom_layer/g')
  [ -n "$line" ] || complain "the README does not say how examples are compiled"
  sh -c "$(printf '%s' "$line" | sed "s|-Lbuild|-L'$(dirname "$REMAT_LIBRARY")'|; s|-o .*|-o '$work/custom_layer'|")" ||
    complain "an example does not compile: $line"
fi
finish
