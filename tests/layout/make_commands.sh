#!/bin/sh
# What `make` does around the build: packages are named and installed only where that was asked for, a build folder that
# does not fit is not used, and what is installed goes away again. Programs of the system are played by small scripts.
. tests/cli/support/expect.sh
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR CC CFLAGS LDFLAGS
mkdir "$work/bin" "$work/a tree"
cp -r Makefile scripts "$work/a tree/"
tree="$work/a tree"
play() { # name: standard input is the script
  { echo '#!/bin/sh'; cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
# run CODE COMMAND...: runs in the tree, with the programs that are played.
run() {
  wanted=$1 code=0
  shift
  (cd "$tree" && PATH="$work/bin:$PATH" "$@") >"$work/out" 2>"$work/err" </dev/null || code=$?
  [ "$code" = "$wanted" ] || complain "$*: exit code $code, wanted $wanted: $(head -c 600 "$work/out") $(head -c 600 "$work/err")"
}
called() { grep -q -- "$1" "$work/calls" 2>/dev/null; }

# ---- packages ----
play dpkg-query <<'END'
exit 1
END
play apt-get <<END
echo "apt-get \$*" >>"$work/calls"
echo "Err:1 http://deb.debian.org/debian bookworm InRelease"
echo "  Temporary failure resolving 'deb.debian.org'" >&2
exit 100
END
play sudo <<'END'
exec "$@"
END
run 1 scripts/packages.sh --ask browser
err "apt-get install -y --no-install-recommends chromium"
! called . || complain "--ask calls apt-get"
run 1 scripts/packages.sh browser
out "Installing: chromium"
err "No package mirror can be reached"
err "apt-get install -y --no-install-recommends chromium"
called "apt-get.* install" || complain "nothing is installed"
play apt-get <<'END'
echo "E: something else"
exit 100
END
run 1 scripts/packages.sh browser
err "E: something else"
err "could not be installed: chromium"
play apt-get <<'END'
exit 0
END
run 0 scripts/packages.sh browser
play dpkg-query <<'END'
echo "install ok installed"
END
run 0 scripts/packages.sh --ask build check browser docs arm
silent out
run 2 scripts/packages.sh nothing

# `make` alone only asks; a compiler that is not there is missed by name.
play dpkg-query <<'END'
exit 1
END
play apt-get <<END
echo "apt-get \$*" >"$work/calls"
END
rm -f "$work/calls"
run 2 make CC=no-such-gcc
err "apt-get install -y --no-install-recommends gcc"
run 2 make CC=no-such-clang
err "apt-get install -y --no-install-recommends clang"
! called . || complain "make alone installs packages"

# ---- build folders ----
play cmake <<END
echo "cmake \$*" >>"$work/calls"
END
cache() { # compiler, home, flags
  rm -rf "$tree/build"
  mkdir "$tree/build"
  printf '%s\n' "CMAKE_C_COMPILER:FILEPATH=$1" "CMAKE_HOME_DIRECTORY:INTERNAL=$2" "CMAKE_GENERATOR:INTERNAL=Unix Makefiles" \
    "CMAKE_C_FLAGS:STRING=${3:-}" "CMAKE_EXE_LINKER_FLAGS:STRING=" >"$tree/build/CMakeCache.txt"
}
: >"$work/calls"
cache "$(command -v sh)" "$work"
run 1 scripts/configure.sh build
err "Run 'make clean'"
! called . || complain "a folder of another tree is configured"
cache "$(command -v sh)" "$tree"
run 0 scripts/configure.sh build
silent out
[ -d "$tree/build" ] || complain "a good folder is removed"
run 0 env CC=sh scripts/configure.sh build
silent out
run 0 env CC=cat scripts/configure.sh build
out "CC is cat, and build was made with $(command -v sh): building anew"
[ ! -d "$tree/build" ] || complain "the folder of another compiler is used"
cache "$(command -v sh)" "$tree" -g
run 0 env CFLAGS=-g scripts/configure.sh build
silent out
run 0 env CFLAGS=-O3 scripts/configure.sh build
out "building anew"
run 1 env CC=no-such-compiler scripts/configure.sh build
err "there is no such program"

# A folder that root made is not written to: it is said how it goes away. Root may write to all folders.
cache "$(command -v sh)" "$tree"
chmod 755 "$work"
chmod 555 "$tree/build"
if [ "$(id -u)" != 0 ]; then
  run 1 scripts/configure.sh build
  err "Run 'sudo make clean' first"
elif command -v setpriv >/dev/null 2>&1; then
  run 1 setpriv --reuid 65534 --regid 65534 --clear-groups scripts/configure.sh build
  err "build belongs to $(id -un), and you may not write to it. Run 'sudo make clean' first"
else
  part_skipped "setpriv is not installed"
fi
chmod 755 "$tree/build"

# What the build misses is told in our words, with the command to paste, and without CMake's.
play cmake <<'END'
printf '%s\n' 'CMake Error at cmake/page.cmake:10 (message):' '   remat: Chart.js is missing. On Debian this installs it:' \
  '       sudo apt-get install --reinstall libjs-chart.js' 'Call Stack (most recent call first):' '  CMakeLists.txt:57 (include)' >&2
exit 1
END
cache "$(command -v sh)" "$tree"
run 1 scripts/configure.sh build
printf 'Chart.js is missing. On Debian this installs it:\n    sudo apt-get install --reinstall libjs-chart.js\n' >"$work/wanted"
cmp -s "$work/wanted" "$work/err" || complain "a message of the build is not shown as it is: $(cat "$work/err")"
play cmake <<END
echo "cmake \$*" >>"$work/calls"
END

# -j of make and JOBS count.
play dpkg-query <<'END'
echo "install ok installed"
END
cache "$(command -v sh)" "$tree"
for flags in "-j7" "-sj7" "-j 7" "JOBS=7"; do
  : >"$work/calls"
  # shellcheck disable=SC2086 # words
  run 0 make $flags
  called "cmake --build build -j 7" || complain "make $flags: $(cat "$work/calls")"
done
rm "$work/bin/cmake"

# What make makes is gone after `make clean`, whatever it is called.
# shellcheck disable=SC2013 # words
for name in $(sed -n 's|^/\(build-\*\)/$|build-any|p; s|^/\([a-z_]*\)/$|\1|p; s|^/\([a-z_.]*\)$|\1|p' .gitignore); do
  case $name in build-any) mkdir "$tree/build-check" "$tree/build-arm" ;; plan.json) ;; *) mkdir -p "$tree/$name" ;; esac
done
run 0 make clean
left=$(cd "$tree" && find . -mindepth 1 -maxdepth 1 ! -name Makefile ! -name scripts)
[ -z "$left" ] || complain "make clean leaves $left"

# ---- installing and taking away ----
if [ "$REMAT_SANITIZE" != ON ]; then
  ln -s "$(dirname "$REMAT")" "$tree/build"
  prefix="$work/my prefix"
  run 0 scripts/install.sh "$prefix"
  out "Installed remat to $prefix"
  [ -x "$prefix/bin/remat" ] || complain "the program is not installed"
  run 0 make uninstall PREFIX="$prefix"
  left=$(find "$prefix" ! -type d)
  [ -z "$left" ] || complain "make uninstall leaves $left"
  [ -z "$(find "$prefix" -name remat)" ] || complain "make uninstall leaves folders: $(find "$prefix" -name remat)"
  run 1 scripts/install.sh --remove "$prefix"
  err "Nothing of remat is installed"
  # Where the loader looks, its list is made anew; elsewhere it is said that it does not look there.
  play ldconfig <<END
echo "ldconfig \$*" >>"$work/calls"
echo "$prefix/lib: (from <builtin>:0)"
END
  : >"$work/calls"
  run 0 scripts/install.sh "$prefix"
  if [ "$(id -u)" = 0 ]; then
    grep -qx "ldconfig " "$work/calls" || complain "installing as root does not run ldconfig: $(cat "$work/calls")"
  else
    out "after root has run ldconfig"
  fi
  run 0 scripts/install.sh --remove "$prefix"
  play ldconfig <<'END'
echo "/usr/lib: (from <builtin>:0)"
END
  run 0 scripts/install.sh "$prefix"
  out "The loader does not look into $prefix: programs that use the shared library need LD_LIBRARY_PATH"
  run 0 scripts/install.sh --remove "$prefix"
  rm "$work/bin/ldconfig"
  run 0 env DESTDIR="$work/pack age" scripts/install.sh /usr
  [ -x "$work/pack age/usr/bin/remat" ] || complain "DESTDIR is not followed"
  run 0 env DESTDIR="$work/pack age" scripts/install.sh --remove /usr
  [ -z "$(find "$work/pack age" ! -type d)" ] || complain "make uninstall does not follow DESTDIR"
  [ ! -e "$tree/build/install_manifest.txt" ] || complain "installing leaves a file in build/"
fi
finish
