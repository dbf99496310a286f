#!/bin/sh
# What is installed is whole: an example builds against it with pkg-config and with CMake, and manual pages, completions
# and the shared library with its version are where people look for them. The prefix has a space in its name.
. tests/cli/support/expect.sh
[ "$REMAT_SANITIZE" != ON ] || { echo "a sanitized build is not installed: skipped"; exit 77; }
# Whatever else is installed, and wherever, this test looks at its own prefix only (support/environment.sh).
unset LD_LIBRARY_PATH
compiler=${CC:-cc}

build=$(dirname "$REMAT")
prefix="$work/a prefix"
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

# pkg-config. Its answers quote the spaces, so a shell has to read them once more, as make does.
PKG_CONFIG_LIBDIR=$(dirname "$(find "$prefix" -name remat.pc)")
export PKG_CONFIG_LIBDIR
[ "$(pkg-config --modversion remat)" = "$version" ] || complain "pkg-config says another version"
eval "$compiler examples/first_plan.c $(pkg-config --cflags --libs remat) -o \"\$work/shared\"" ||
  complain "pkg-config: it does not build"
LD_LIBRARY_PATH=$library "$work/shared" | grep -q 'layer 23: keep' || complain "pkg-config: it does not run"
eval "$compiler examples/first_plan.c $(pkg-config --cflags remat) \"\$library/libremat.a\" \
  $(pkg-config --static --libs-only-other remat) -lm -lpthread -o \"\$work/static\"" ||
  complain "the static library does not link"
"$work/static" | grep -q 'layer 23: keep' || complain "the static program does not run"

# find_package, for both libraries.
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(remat $version REQUIRED)
add_executable(shared "$PWD/examples/first_plan.c")
target_link_libraries(shared remat::remat)
add_executable(static "$PWD/examples/first_plan.c")
target_link_libraries(static remat::static)
END
if cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/project/build" >>"$work/log" 2>&1; then
  grep -q "^remat_DIR:PATH=$library" "$work/project/build/CMakeCache.txt" || complain "find_package finds another remat"
  for kind in shared static; do
    "$work/project/build/$kind" | grep -q 'layer 23: keep' || complain "find_package: the $kind program does not run"
  done
else
  cat "$work/log"
  complain "find_package: it does not build"
fi
finish
