#!/bin/sh
# Whether all sources are as clang-format writes them, what shellcheck says of all scripts, and pyflakes and mypy of the Python
# package. `lint.sh --fix` formats.
set -eu
# Versions of clang-format disagree: 14 is Debian 12's.
format=""
for program in clang-format-14 clang-format; do
  if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then format=$program; break; fi
done
action="--dry-run --Werror"
[ "${1:-}" != --fix ] || action=-i

failed=0
if [ -n "$format" ]; then
  # shellcheck disable=SC2086 # options
  find src cli include importers tests bench examples \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 "$format" $action ||
    { echo "clang-format writes these differently; scripts/lint.sh --fix lets it." >&2; failed=1; }
else
  echo "clang-format 14 is not installed: formatting is not checked"
fi
if command -v shellcheck >/dev/null 2>&1; then
  find . -name 'build*' -prune -o -name '*.sh' -print0 | xargs -0 shellcheck .ci/run || failed=1
else
  echo "shellcheck is not installed: scripts are not checked"
fi
if command -v pyflakes3 >/dev/null 2>&1; then
  pyflakes3 python || failed=1
else
  echo "pyflakes3 is not installed: Python is not checked"
fi
if command -v mypy >/dev/null 2>&1; then
  # Its declarations are made when the package is built. PyTorch has types of its own, which differ from release to release.
  mypy --ignore-missing-imports --exclude /torch/ --cache-dir=/dev/null --no-error-summary python/remat || failed=1
else
  echo "mypy is not installed: types in Python are not checked"
fi
exit $failed
