#!/bin/sh
# Installs what is in build/: install.sh PREFIX, or takes it away again: install.sh --remove PREFIX. DESTDIR, from the
# environment, goes before the prefix. A list of the files is installed with them: taking them away needs no build.
set -eu
remove=""
if [ "$1" = --remove ]; then
  remove=1
  shift
fi
prefix=$(realpath -ms "$1")
place=${DESTDIR:-}$prefix
list=$place/share/doc/remat/installed.txt

fail() {
  echo "$1" >&2
  exit 1
}

if [ -n "$remove" ]; then
  [ -f "$list" ] || fail "Nothing of remat is installed under '$place': there is no $list."
  [ -w "$(dirname "$list")" ] || fail "You may not write to '$place'. Try: sudo make uninstall"
  while IFS= read -r file; do
    rm -f "$place/$file"
    # Folders that are empty now and are remat's own go as well.
    folder=$(dirname "$place/$file")
    case $folder in */remat) rmdir "$folder" 2>/dev/null || true ;; esac
  done <"$list"
  rm -f "$list"
  rmdir "$(dirname "$list")" 2>/dev/null || true
  echo "Removed remat from $place."
else
  # The first folder on the way that exists has to let us in.
  folder=$place
  while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
  [ -w "$folder" ] || fail "You may not write to '$folder'. Try: sudo make install, or make install PREFIX=\"\$HOME/.local\""
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake --install build --prefix "$prefix" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  mkdir -p "$(dirname "$list")"
  while IFS= read -r file || [ -n "$file" ]; do echo "${file#"$prefix/"}"; done <build/install_manifest.txt >"$list"
  rm -f build/install_manifest.txt # root's, if root installs
  echo "Installed remat to $place: $(wc -l <"$list") files, listed in $list."
fi
[ -z "${DESTDIR:-}" ] || exit 0

# The loader's list of libraries. It is searched for in /sbin too, which is in root's path only.
PATH=$PATH:/usr/sbin:/sbin
if ldconfig -NXv 2>/dev/null | grep -q "^$prefix/lib[^:]*:"; then
  if [ "$(id -u)" = 0 ]; then
    ldconfig
  else
    echo "Programs find the shared library after root has run ldconfig."
  fi
elif [ -z "$remove" ]; then
  echo "The loader does not look into $prefix: programs that use the shared library need LD_LIBRARY_PATH or an rpath."
fi
