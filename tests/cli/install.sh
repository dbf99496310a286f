#!/bin/sh
# What is installed is whole: an example builds against it with pkg-config and with CMake, and manual pages, completions
# and the shared library with its version are where people look for them.
. tests/cli/support/expect.sh
[ "$REMAT_SANITIZE" != ON ] || { echo "a sanitized build is not installed: skipped"; exit 77; }

build=$(dirname "$REMAT")
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/log" 2>&1 || { cat "$work/log"; complain "it does not install"; finish; exit 1; }
version=$("$REMAT" --version | sed 's/remat //')
library=$(dirname "$(find "$prefix" -name libremat.a)")

[ "$("$prefix/bin/remat" --version)" = "remat $version" ] || complain "the installed tool does not run"
[ -f "$library/libremat.so.$version" ] || complain "the shared library has no version"
[ "$(readlink -f "$library/libremat.so")" = "$(readlink -f "$library/libremat.so.$version")" ] || complain "libremat.so points elsewhere"
for command in $("$REMAT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  [ -f "$prefix/share/man/man1/remat-$command.1" ] || complain "no manual page of remat $command"
done
for file in share/man/man1/remat.1 share/bash-completion/completions/remat share/zsh/site-functions/_remat; do
  [ -f "$prefix/$file" ] || complain "$file is not installed"
done
find "$prefix" -name chart.licence.txt | grep -q . || complain "the chart library's licence is not installed"

# Only the names of the public headers can be seen.
if nm -D --defined-only "$library/libremat.so" | awk '{ print $3 }' | grep -v '^remat_'; then complain "the shared library shows private names"; fi

# pkg-config, for the prefix it was installed to.
pc=$(find "$prefix" -name remat.pc)
sed -i "s|^prefix=.*|prefix=$prefix|" "$pc"
export PKG_CONFIG_PATH=$(dirname "$pc")
[ "$(pkg-config --modversion remat)" = "$version" ] || complain "pkg-config says another version"
# shellcheck disable=SC2046 # a list of flags
cc examples/first_plan.c $(pkg-config --cflags --libs remat) -o "$work/shared" || complain "pkg-config: it does not build"
LD_LIBRARY_PATH=$library "$work/shared" | grep -q 'layer 23: keep' || complain "pkg-config: it does not run"
cc examples/first_plan.c $(pkg-config --cflags remat) "$library/libremat.a" $(pkg-config --static --libs-only-other remat) -fopenmp -lm -lpthread \
  -o "$work/static" || complain "the static library does not link"
"$work/static" | grep -q 'layer 23: keep' || complain "the static program does not run"

# find_package, for both libraries.
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(remat $version REQUIRED)
add_executable(shared $PWD/examples/first_plan.c)
target_link_libraries(shared remat::remat)
add_executable(static $PWD/examples/first_plan.c)
target_link_libraries(static remat::static)
END
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/project/build" >>"$work/log" 2>&1 || { cat "$work/log"; complain "find_package: it does not build"; }
for kind in shared static; do
  "$work/project/build/$kind" | grep -q 'layer 23: keep' || complain "find_package: the $kind program does not run"
done
finish
