#!/bin/sh
# Builds the benchmarks and runs them all, or the ones named in ONLY="plan ...".
set -eu
jobs=$1
cmake -S . -B build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON >/dev/null
cmake --build build-check -j "$jobs" -- --no-print-directory -s
for program in build-check/bench/bench_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  name=${program##*/bench_}
  case " ${ONLY:-$name} " in *" $name "*) ;; *) continue ;; esac
  printf '\n== %s\n' "$name"
  "$program"
done
