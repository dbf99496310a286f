#!/bin/sh
# The public headers compile as C++ and as strict C11, each of them alone. A C++ program runs with the shared library.
set -eu
. tests/cli/support/environment.sh

cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "skipped: there is no C++ compiler $cxx"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"

for header in include/remat/*.h; do
  echo "#include <remat/${header##*/}>" | tee "$work/alone.cc" >"$work/alone.c"
  # shellcheck disable=SC2086 # a list of options
  "$cxx" -std=c++11 $warnings -Iinclude -fsyntax-only "$work/alone.cc"
  # shellcheck disable=SC2086
  "${CC:-cc}" -std=c11 $warnings -Iinclude -fsyntax-only "$work/alone.c"
done

[ "$REMAT_SANITIZE" != ON ] || { echo "not run: a plain program cannot use a sanitized library"; exit 0; }
# shellcheck disable=SC2086
"$cxx" -std=c++11 $warnings -Iinclude tests/abi/program_cxx.cc -o "$work/program" "$REMAT_SHARED"
[ "$(LD_LIBRARY_PATH=$(dirname "$REMAT_SHARED") "$work/program")" = "done" ]
