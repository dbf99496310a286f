#!/bin/sh
# Fuzzes the readers: fuzz.sh runs every target for SECONDS_EACH seconds (default 300), JOBS at a time (default 1), or only
# those in TARGETS. A target ends at its first crash, leak or timeout. Then fuzz.sh says where the input is, and fails.
#   fuzz.sh --build JOBS   builds build-fuzz/fuzz first, with what it needs beside it: the folder can be used elsewhere.
# What was found stays in build-fuzz/found, so that the next run begins there.
set -eu
folder=build-fuzz

# All libraries that the program needs, so that it runs on a machine without clang, too. Debug lines take most room.
collect() {
  rm -rf build-fuzz/lib
  mkdir -p $folder/lib
  cp $folder/tests/fuzz/fuzz $folder/fuzz
  strip --strip-debug $folder/fuzz
  ldd $folder/fuzz | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" $folder/lib; done
}

if [ "${1:-}" = --build ]; then
  (unset CFLAGS LDFLAGS MAKEFLAGS MFLAGS MAKELEVEL
    CC=clang scripts/configure.sh $folder -DREMAT_FUZZ=ON -DREMAT_STRICT=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
    cmake --build $folder -j "$2" --target fuzz -- --no-print-directory -s)
  collect
fi
[ -x $folder/fuzz ] || { echo "There is no $folder/fuzz; make fuzz builds it." >&2; exit 1; }

seconds=${SECONDS_EACH:-300}
fuzz=$folder/fuzz
list() { ASAN_OPTIONS=detect_leaks=0 $fuzz; }
# Where the system's libraries are missing or older than those it was built with, it takes its own.
list >/dev/null 2>&1 || fuzz="$(find $folder/lib -name 'ld-linux*') --library-path $folder/lib $folder/fuzz"
targets=${TARGETS:-$(list)}
# Leaks are found by tracing the program, which some machines forbid. The targets count the library's own memory in any case.
# shellcheck disable=SC2086 # a command and its options
if $fuzz utf8 -runs=1 2>&1 | grep -q 'LeakSanitizer has encountered a fatal error'; then export ASAN_OPTIONS=detect_leaks=0; fi
logs=$folder/logs
mkdir -p $logs $folder/crashes
for target in $targets; do
  [ -d "tests/fuzz/corpus/$target" ] || { echo "There is no target '$target'. The targets:" >&2; list >&2; exit 2; }
done

run() {
  mkdir -p "$folder/found/$1"
  # shellcheck disable=SC2086 # a command and its options
  exec $fuzz "$1" "$folder/found/$1" "tests/fuzz/corpus/$1" -max_total_time="$seconds" -max_len=8192 -timeout=60 \
    -rss_limit_mb=2048 -artifact_prefix="$folder/crashes/$1-" -print_final_stats=1 >"$logs/$1.log" 2>&1
}

# One line for a target that has ended.
report() {
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$1.log")
  if [ "$2" = 0 ]; then
    echo "$1: ${runs:-0} inputs, nothing found"
    return 0
  fi
  file=$(sed -n 's/.*Test unit written to //p' "$logs/$1.log" | tail -1)
  echo "$1: FAILED after ${runs:-some} inputs. The input: ${file:-none}. The log: $logs/$1.log"
  return 1
}

# `wait` for a process gives its exit code, so the targets are waited for in the order in which they were started.
code=0 running="" one=""
finish_first() {
  first=${running%% *}
  running=${running#"$first"} running=${running# }
  failed=0
  wait "${first#*:}" || failed=$?
  report "${first%%:*}" "$failed" || code=1
}
# What runs in the background does not hear Ctrl-C.
trap 'for one in $running; do kill "${one#*:}" 2>/dev/null || true; done; exit 130' INT TERM
started=0
for target in $targets; do
  [ "$started" -lt "${JOBS:-1}" ] || finish_first
  run "$target" &
  running="${running:+$running }$target:$!"
  started=$((started + 1))
done
while [ -n "$running" ]; do finish_first; done
exit $code
