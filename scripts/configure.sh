#!/bin/sh
# Configures a build folder and says nothing unless that fails: configure.sh FOLDER [CMAKE-OPTION...]
# CMake takes CC, CFLAGS and LDFLAGS for a new folder only. Here a folder that was made with others is made anew.
set -eu
folder=$1
shift
cache=$folder/CMakeCache.txt

fail() {
  echo "$1" >&2
  exit 1
}
cached() { sed -n "s/^$1:[A-Z]*=//p" "$cache"; }
# program PATH-OR-NAME: the file behind it, through links.
program() { readlink -f "$(command -v "$1" || echo "$1")"; }

# Whether a variable of the environment asks for something else than the folder has.
changed() {
  if [ -n "${CC:-}" ]; then
    name=${CC%% *} have=$(cached CMAKE_C_COMPILER)
    [ "$(program "$name")${CC#"$name"}" = "$(program "$have")$(cached CMAKE_C_COMPILER_ARG1)" ] ||
      { echo "CC is $CC, and $folder was made with $have"; return 0; }
  fi
  [ -z "${CFLAGS+set}" ] || [ "$CFLAGS" = "$(cached CMAKE_C_FLAGS)" ] ||
    { echo "CFLAGS differ from those of $folder"; return 0; }
  [ -z "${LDFLAGS+set}" ] || [ "$LDFLAGS" = "$(cached CMAKE_EXE_LINKER_FLAGS)" ] ||
    { echo "LDFLAGS differ from those of $folder"; return 0; }
  return 1
}

compiler=${CC:-}
[ -z "$compiler" ] || command -v "${compiler%% *}" >/dev/null || fail "CC is '$compiler', and there is no such program."
if [ -e "$folder" ] && [ ! -w "$folder" ]; then
  fail "$folder belongs to $(stat -c %U "$folder"), and you may not write to it. Run 'sudo make clean' first."
fi
if [ -f "$cache" ]; then
  home=$(cached CMAKE_HOME_DIRECTORY)
  [ "$(readlink -f "$home")" = "$(pwd -P)" ] ||
    fail "$folder was made in '$home', and this is '$PWD': the tree was moved or copied. Run 'make clean' first."
  [ "$(cached CMAKE_GENERATOR)" = "Unix Makefiles" ] ||
    fail "$folder was made for $(cached CMAKE_GENERATOR). Run 'make clean' first."
  if why=$(changed); then
    echo "$why: building anew."
    rm -rf "$folder"
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run_cmake() { cmake -S . -B "$folder" -G "Unix Makefiles" "$@" >"$log" 2>&1; }
run_cmake "$@" || {
  # A compiler that cannot link: tried without linking, cmake/platform.cmake says what is wrong with the target.
  if grep -q 'is not able to compile a simple test program' "$log"; then
    rm -rf "$folder"
    run_cmake "$@" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY || true
  fi
  # A message of ours, without what CMake says around it; any other error as it is.
  awk '/^ +remat: / { told = 1; sub(/^ +remat: /, "") } /^Call Stack|^$/ { told = 0 } told { sub(/^   ?/, ""); print }' "$log" >&2
  grep -qE '^ +remat: ' "$log" || cat "$log" >&2
  exit 1
}
