#!/bin/sh
# Makes a wheel of the Python package in a build folder, with the shared library inside: wheel.sh BUILD TO
# The target remat_python must have been built there. Tags say Linux and the processor; any Python 3 can import it.
set -eu
build=$1
to=$2
here=$(cd "$(dirname "$0")/.." && pwd)
python=""
for candidate in ${REMAT_PYTHON:-} python3 /usr/bin/python3; do
  if "$candidate" -c 'import wheel' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo "No Python here has the module wheel; its Debian package is python3-wheel." >&2; exit 1; }
[ -f "$build/python/remat/_declarations.py" ] || {
  echo "$build/python has no package: no Python here has cffi and numpy (Debian: python3-cffi python3-numpy)." >&2
  exit 1
}

version=$(sed -n 's/^project(remat VERSION \([0-9.]*\) .*/\1/p' "$here/CMakeLists.txt")
work=$(mktemp -d) log=$(mktemp)
trap 'rm -rf "$work" "$log"' EXIT
cp -rL "$build/python/remat" "$work/remat"
find "$work" -name __pycache__ -prune -exec rm -rf {} +
strip --strip-unneeded "$work"/remat/libremat.so.* 2>/dev/null || true # of another processor, or no strip
about=$work/remat-$version.dist-info
mkdir "$about"
cp "$here/LICENSE" "$here/web/chart.licence.txt" "$about/"
{ sed "s/@VERSION@/$version/" "$here/python/METADATA.in" && cat "$here/python/README.md"; } >"$about/METADATA"
printf 'Wheel-Version: 1.0\nGenerator: remat %s\nRoot-Is-Purelib: false\nTag: py3-none-linux_%s\n' "$version" \
  "$(uname -m)" >"$about/WHEEL"
mkdir -p "$to"
rm -f "$to"/remat-*.whl
"$python" -m wheel pack --dest-dir "$to" "$work" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
for file in "$to"/remat-*.whl; do echo "$file"; done
