#!/bin/sh
# Pictures at their edges: a curve that is too steep for its scale is cut and says so, a very wide terminal is not filled,
# the variables of the locale choose the letters, and nothing is divided by a cost of 0.
. tests/cli/support/expect.sh
{
  echo 'index,type,activation_bytes,recompute_flops'
  for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
    flops=10
    [ $i != 5 ] || flops=100000
    echo "$i,ffn,$((100 + i * 7)),$flops"
  done
} >"$work/steep.csv"
COLUMNS=300 LC_ALL=C expect 0 sweep "$work/steep.csv" --plot
out "the least memory costs +166.6 %"
out "|^^^"
awk 'length($0) > 200 { exit 1 }' "$work/out" || complain "a line of more than 200 columns"
COLUMNS=60 LC_ALL=C.UTF-8 expect 0 sweep "$work/steep.csv" --plot
out "▲▲▲"

# letters VARIABLES WANTED: blocks or plain letters.
letters() {
  wanted=$1
  shift
  env -u LC_ALL -u LC_CTYPE -u LANG "$@" COLUMNS=60 "$REMAT" sweep "$work/steep.csv" --plot >"$work/out"
  found=plain
  ! grep -q '▲' "$work/out" || found=blocks
  [ $found = "$wanted" ] || complain "$*: $found"
}
letters plain
letters plain LC_ALL=C LANG=C.UTF-8
letters plain LC_ALL= LC_CTYPE=POSIX LANG=C.UTF-8
letters blocks LC_ALL= LC_CTYPE= LANG=en_US.utf8
letters blocks LC_CTYPE=en_US.UTF-8

printf 'index,type,activation_bytes,recompute_flops\n' >"$work/empty.csv"
printf 'index,type,activation_bytes,recompute_flops\n0,ffn,0,0\n1,ffn,0,0\n' >"$work/zero.csv"
for file in empty zero; do
  expect 0 plan "$work/$file.csv" --compare
  expect 0 plan "$work/$file.csv" --compare --json --budget 1KiB
  ! grep -qi 'nan\|inf\b' "$work/out" || complain "$file: not a number in $(cat "$work/out")"
  expect 0 sweep "$work/$file.csv" --json
  expect 0 sweep "$work/$file.csv" --all --plot
done
finish
