#!/bin/sh
# `remat generate`: a model of bytes goes on with a text.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
byte_model
expect 0 train "$work/bytes.ini" --steps 120 --save "$work/w.st" -q

# It learned its three letters: the likeliest byte is always the next one, also past the length of its sequence.
expect 0 generate "$work/bytes.ini" -w "$work/w.st" --prompt abcab --count 12 --temperature 0
[ "$(cat "$work/out")" = abcabcabcabcabcab ] || complain "it goes on with $(cat "$work/out")"
cp "$work/out" "$work/told"
expect_stdin 0 "$work/bytes.ini" generate - -w "$work/w.st" --prompt abcab --count 12 --temperature 0
cmp "$work/out" "$work/told" || complain "a model from standard input goes on with $(cat "$work/out")"
# Drawn, but the same for the same seed.
expect 0 generate "$work/bytes.ini" -w "$work/w.st" -n 30 -t 2 --seed 4
cp "$work/out" "$work/drawn"
expect 0 generate "$work/bytes.ini" -w "$work/w.st" -n 30 -t 2 --seed 4 -j 1
cmp "$work/out" "$work/drawn" || complain "the same seed draws another text"
expect 0 generate "$work/bytes.ini" -w "$work/w.st" -n 30 -t 2 --seed 5
! cmp -s "$work/out" "$work/drawn" || complain "another seed draws the same text"

expect 2 generate "$work/bytes.ini" -w "$work/w.st" -t cold
expect 2 generate "$work/bytes.ini"
spiral_model
expect 0 train "$work/spirals.ini" --steps 1 --save "$work/s.st" -q
expect 2 generate "$work/spirals.ini" -w "$work/s.st"
err "not a model of bytes"
finish
