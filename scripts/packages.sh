#!/bin/sh
# Installs the Debian packages that a job needs and that are not there yet, and says which.
# Usage: packages.sh build|check|browser|access|docs ...
set -eu

needed=""
for job in "$@"; do
  case $job in
    build) needed="$needed gcc libc6-dev make cmake libxxhash-dev libjs-chart.js" ;;
    check) needed="$needed pkg-config libcmocka-dev libjansson-dev cmark-gfm clang libomp-dev libclang-rt-14-dev" ;;
    browser) needed="$needed chromium chromium-driver curl" ;;
    access) needed="$needed npm" ;;
    docs) needed="$needed cmark-gfm" ;;
    *) echo "packages.sh: unknown job '$job'" >&2; exit 2 ;;
  esac
done

command -v dpkg-query >/dev/null 2>&1 || exit 0 # not Debian: the build itself will say what it misses

missing=""
for package in $needed; do
  case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
    "install ok installed") ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root="sudo"
  command -v sudo >/dev/null 2>&1 || {
    echo "These packages are missing, and neither root nor sudo is at hand to install them:$missing" >&2
    exit 1
  }
fi
echo "Installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install_missing() {
  # shellcheck disable=SC2086 # a list of names
  $as_root apt-get install -y --no-install-recommends $missing >"$log" 2>&1
}
# The package lists may be missing or old on a fresh machine: fetch them only if the first try fails.
install_missing || { $as_root apt-get update >"$log" 2>&1 && install_missing; } || { cat "$log" >&2; exit 1; }
