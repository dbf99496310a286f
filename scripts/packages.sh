#!/bin/sh
# Sees to the Debian packages that a job needs: packages.sh [--ask] JOB...
# Installs what is missing and says what; with --ask installs nothing, and says what to type.
set -eu

ask=""
if [ "${1:-}" = --ask ]; then
  ask=1
  shift
fi
compiler=${CC:-cc}
case $compiler in
  *clang*) compiler_packages="clang" ;;
  *) compiler_packages="gcc" ;;
esac
needed=""
for job in "$@"; do
  case $job in
    build) needed="$needed $compiler_packages libc6-dev make cmake libxxhash-dev libjs-chart.js" ;;
    check) needed="$needed gcc pkg-config libcmocka-dev libjansson-dev cmark-gfm clang libclang-rt-14-dev clang-format-14
      shellcheck zlib1g-dev libpng-dev libjpeg-dev protobuf-c-compiler libprotobuf-c-dev python3-cffi python3-numpy python3-pytest python3-wheel python3-torch
      pyflakes3 mypy openmpi-bin libopenmpi-dev" ;;
    coverage) needed="$needed gcc gcovr" ;;
    arm) needed="$needed gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" ;;
    browser) needed="$needed chromium chromium-driver curl" ;;
    access) needed="$needed npm" ;;
    docs) needed="$needed cmark-gfm" ;;
    python) needed="$needed python3 python3-cffi python3-numpy python3-wheel" ;;
    torch) needed="$needed python3-cffi python3-numpy python3-torch python3-torchvision" ;;
    *) echo "packages.sh: unknown job '$job'" >&2; exit 2 ;;
  esac
done

compiles() { printf '#include <%s>\n' "$1" | $compiler -E - >/dev/null 2>&1; }
# there PACKAGE: it is installed, or what it is needed for is there without it.
there() {
  case $1 in
    "${compiler_packages%% *}") command -v "${compiler%% *}" >/dev/null 2>&1 && return 0 || return 1 ;;
    libc6-dev) compiles stdio.h && return 0 ;;
    libxxhash-dev) compiles xxhash.h && return 0 ;;
    zlib1g-dev) compiles zlib.h && return 0 ;;
    libpng-dev) compiles png.h && return 0 ;;
    libjpeg-dev) compiles jpeglib.h && return 0 ;;
    libjs-chart.js) for file in /usr/share/javascript/chart.js/[cC]hart.min.js; do [ ! -f "$file" ] || return 0; done ;;
    make | cmake | gcc | clang | pkg-config | cmark-gfm | shellcheck | curl | npm | gcovr | pyflakes3 | mypy) command -v "$1" >/dev/null 2>&1 && return 0 ;;
  esac
  case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null || true) in
    "install ok installed") return 0 ;;
  esac
  return 1
}

# Elsewhere than on Debian CMake says what it misses.
if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  command -v cmake >/dev/null 2>&1 || { echo "CMake is missing." >&2; exit 1; }
  exit 0
fi
missing=""
for package in $needed; do
  case " $missing " in *" $package "*) continue ;; esac
  there "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo "
command="${as_root}apt-get install -y --no-install-recommends$missing"
if [ -n "$ask" ]; then
  printf 'Missing:%s\nThis installs what is missing:\n\n    %s\n\n' "$missing" "$command" >&2
  exit 1
fi
if [ -n "$as_root" ] && ! command -v sudo >/dev/null 2>&1; then
  printf 'Missing:%s\nThere is no sudo here. As root, type:\n\n    %s\n\n' "$missing" "${command#sudo }" >&2
  exit 1
fi
echo "Installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # sudo or nothing
apt() { ${as_root}apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@" >>"$log" 2>&1; }
install_missing() {
  # shellcheck disable=SC2086 # a list of names
  apt install -y --no-install-recommends $missing
}
# The package lists may be missing or old on a fresh machine: fetch them only if the first try fails.
install_missing || { apt update && install_missing; } || {
  if grep -qE 'Could not resolve|Temporary failure resolving|Could not connect|Cannot initiate the connection|Unable to connect|Connection (timed out|failed|refused)|Network is unreachable' "$log"; then
    grep -m 1 -E '^(E|W|Err)' "$log" >&2 || true
    printf 'No package mirror can be reached, so nothing was installed. With a network, type:\n\n    %s\n\n' "$command" >&2
  else
    cat "$log" >&2
    printf 'The packages could not be installed:%s\n' "$missing" >&2
  fi
  exit 1
}
