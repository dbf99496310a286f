#!/bin/sh
# Targets that Remat cannot run on get an early answer, and a standard toolchain file is enough for one that it can run on.
. tests/cli/support/expect.sh
unset CC
compiler=$(command -v gcc || command -v cc)

# configure CODE CMAKE-OPTION...: nothing is compiled.
configure() {
  wanted=$1 code=0
  shift
  rm -rf "$work/build"
  scripts/configure.sh "$work/build" "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || complain "cmake $*: exit code $code, wanted $wanted: $(head -c 600 "$work/err")"
}
# One sentence of ours, and nothing of CMake's.
told() {
  err "$1"
  ! grep -q "CMake Error\|Call Stack" "$work/err" || complain "CMake's own words are shown: $(head -c 600 "$work/err")"
}

# Without 32-bit libraries a program for such a target cannot even be linked.
case $(uname -m) in
  x86_64)
    configure 1 -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS=-m32
    told "makes 32-bit programs, and Remat needs a 64-bit target"
    ;;
  *) part_skipped "this compiler has no -m32" ;;
esac
configure 1 -DCMAKE_EXE_LINKER_FLAGS=-lno-such-library
told "cannot link a program"

# A C library like musl, which has no argp_parse.
mkdir "$work/include"
echo "/* no argp_parse */" >"$work/include/argp.h"
configure 1 -DCMAKE_C_FLAGS="-I$work/include"
told "has no argp_parse. Remat needs the GNU C library"

# A toolchain file as the manual of CMake has it: nothing of this computer is looked at, and the emulator runs the program.
mkdir "$work/root"
cat >"$work/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $(uname -m))
set(CMAKE_C_COMPILER $compiler)
set(CMAKE_FIND_ROOT_PATH $work/root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
END
configure 0 -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" -DCMAKE_CROSSCOMPILING_EMULATOR="$work/emulator"
manual=$work/build/CMakeFiles/remat_manual.dir/build.make
for script in manual completions; do
  grep -q "scripts/$script.sh.*$work/emulator" "$manual" || complain "$script.sh does not run the program with the emulator"
done
# Without an emulator the program that writes the pages is built for this computer.
configure 0 -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake"
for script in manual completions; do
  grep -q "scripts/$script.sh.*$work/build/host/remat" "$manual" || complain "$script.sh runs the target's program"
done
finish
