#!/bin/sh
# Builds what users get, in build/, with one line of progress: build.sh JOBS. V=1 shows every command instead. What the
# compiler complains about is shown in any case, and everything where it fails.
set -eu
jobs=$1
folder=build
# The make that called has flags of its own, which are no business of the one that builds.
unset MAKEFLAGS MFLAGS MAKELEVEL

scripts/configure.sh $folder
if [ -n "${V:-}" ]; then
  exec cmake --build $folder -j "$jobs" -- --no-print-directory VERBOSE=1
fi
log=$(mktemp) complaints=$(mktemp) failed=$(mktemp)
trap 'rm -f "$log" "$complaints" "$failed"' EXIT
trap 'exit 130' INT TERM
terminal=0
if [ -t 1 ]; then terminal=1; fi
# A pipe hides the exit code of what stands before it.
{ cmake --build $folder -j "$jobs" -- --no-print-directory 2>"$complaints" || echo 1 >"$failed"; } | tee "$log" |
  awk -v terminal=$terminal '
    function show(text) { if (terminal) { printf "\r%-40s", text; fflush() } }
    /Building C object/ && !begun { begun = 1; if (!terminal) { print "Building remat ..."; fflush() } }
    match($0, /^\[ *[0-9]+%\]/) { if (begun) show("Building remat: " substr($0, 2, RLENGTH - 2)) }
    END { if (begun && terminal) printf "\r%-40s\r", "" }'
if [ -s "$failed" ]; then
  cat "$log" "$complaints" >&2
  exit 1
fi
cat "$complaints" >&2
