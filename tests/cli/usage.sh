#!/bin/sh
# Help, versions and wrong usage.
. tests/cli/support/expect.sh

expect 0 --version
out "remat "
cp "$work/out" "$work/version"
for word in version -V; do
  expect 0 $word
  cmp "$work/out" "$work/version" || complain "remat $word is not the version"
done
expect 0 help
out "Usage: remat COMMAND"
expect 0 --help
out "Usage: remat COMMAND"
out "Exit codes"
expect 2
err "Usage: remat COMMAND"
silent out
expect 2 plant x.json
err "no command 'plant'; did you mean plan?"
expect 2 tarin
err "did you mean train?"
expect 2 help trian
err "did you mean train?"
expect 2 frobnicate
err "no command 'frobnicate'; 'remat --help' lists them"
expect 2 xx
! grep -q "did you mean" "$work/err" || complain "xx is near to nothing"

# Every command that --help lists explains itself with an example, and refuses what it does not know.
for command in $("$REMAT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  expect 0 "$command" --help
  out "Usage: remat $command"
  out "Example"
  silent err
  cp "$work/out" "$work/help"
  expect 0 help "$command"
  cmp "$work/out" "$work/help" || complain "remat help $command is something else"
  expect 0 "$command" -h
  cmp "$work/out" "$work/help" || complain "remat $command -h is something else"
  expect 2 "$command" --no-such-option
  err "remat $command"
done

expect 2 plan
err "FILE is missing"
expect 2 plan a.json b.json
err "second"
expect 2 plan examples/transformer.json --budget 8G
err "ambiguous: write GB for 10^9 bytes or GiB for 2^30 bytes"
for size in -5 nan inf "" 1.2.3KiB 99999999999GiB 12XB; do
  expect 2 plan examples/transformer.json --budget="$size"
done
for strategy in nothing every-nth every-nth:x every-nth:0 full:0 full:x selective selective:nan selective:-0.1 \
  selective:1.5 none:1 largest:-1 revolve:0 revolve budget; do
  expect 2 plan examples/transformer.json --strategy "$strategy"
  [ -s "$work/err" ] || complain "no word about the strategy $strategy"
done
expect 2 plan examples/transformer.json --strategy none --count kept
expect 2 plan examples/transformer.json --count most
expect 2 check examples/transformer.json
err "--profile FILE is missing"
expect 2 check - --profile -
expect 6 plan "$work/nowhere.json"
err "nowhere.json: cannot be opened"
expect 6 plan examples/transformer.json -o "$work/no/such/folder/plan.json"
err "no/such/folder/plan.json"
[ "$("$REMAT" plan examples/transformer.json >/dev/full 2>"$work/err"; echo $?)" = 6 ] || complain "a full disk is not noticed"
[ "$("$REMAT" plan examples/transformer.json --json >/dev/full 2>"$work/err"; echo $?)" = 6 ] || complain "a full disk is not noticed"
finish
