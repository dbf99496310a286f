#!/bin/sh
# --plot: as wide as asked for, in blocks or plain letters, coloured on a terminal only.
. tests/cli/support/expect.sh

profile=examples/transformer.json
for columns in 50 80 123; do
  COLUMNS=$columns LC_ALL=C expect 0 plan $profile --budget 6KiB --plot
  sed -n '/^memory over time/,$p' "$work/out" >"$work/plot"
  awk -v most="$columns" 'length($0) > most { exit 1 }' "$work/plot" || complain "a line is wider than $columns columns"
  longest=$(awk 'length($0) > longest { longest = length($0) } END { print longest }' "$work/plot")
  [ "$longest" -ge $((columns - 2)) ] || complain "the picture of $columns columns is only $longest wide"
done
# Plain letters where the locale is not UTF-8, and nothing but ASCII.
COLUMNS=60 LC_ALL=C expect 0 plan $profile --budget 6KiB --plot
out "s saved states"
out "peak 6 KiB, backward 5"
out "the line is the budget of 6 KiB"
sed -n '/^memory over time/,$p' "$work/out" >"$work/plot"
if LC_ALL=C grep -q '[^ -~]' "$work/plot"; then complain "letters outside ASCII in the C locale"; fi
# The bars are the memory model's figures: with one column a step, the peak's column reaches the top row and no other kind
# of step does.
top=$(sed -n '2p' "$work/plot")
case $top in *"6 KiB |"*y*) ;; *) complain "the peak does not reach the budget's row: $top" ;; esac

COLUMNS=60 LC_ALL=C.UTF-8 expect 0 plan $profile --budget 6KiB --plot
out "█"
COLUMNS=60 LC_ALL=C.UTF-8 expect 0 sweep $profile --plot
out "cost over memory"
out "knee at 6 KiB, +17.8 %"
if grep -q "$(printf '\033')" "$work/out"; then complain "colours without a terminal"; fi

# On a terminal there are colours, unless NO_COLOR is set.
if command -v script >/dev/null 2>&1; then
  export REMAT profile
  command='"$REMAT" plan "$profile" --budget 6KiB --plot'
  TERM=xterm script -qec "$command" /dev/null >"$work/out" </dev/null
  grep -q "$(printf '\033')\[33m" "$work/out" || complain "no colours on a terminal"
  NO_COLOR=1 TERM=xterm script -qec "$command" /dev/null >"$work/out" </dev/null
  if grep -q "$(printf '\033')\[33m" "$work/out"; then complain "colours in spite of NO_COLOR"; fi
else
  part_skipped "script is not installed: no terminal"
fi

expect 2 plan $profile --plot --json
expect 2 plan $profile --plot --compare
expect 2 sweep $profile --plot --csv
expect 4 plan $profile --budget 1KiB --plot
printf 'index,type,activation_bytes,recompute_flops\n' >"$work/empty.csv"
expect 0 plan "$work/empty.csv" --plot
printf 'index,type,activation_bytes,recompute_flops\n0,ffn,0,0\n' >"$work/zero.csv"
expect 0 plan "$work/zero.csv" --plot
expect 0 sweep "$work/zero.csv" --plot
finish
