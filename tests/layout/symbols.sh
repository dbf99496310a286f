#!/bin/sh
# The shared library shows the functions of the public headers and of those of release 0.1, by name, and nothing else:
# the headers, src/libremat.map and the built library (REMAT_SHARED) must agree.
set -eu
. tests/cli/support/environment.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Functions that headers declare, one a line, without those that are defined in them: comments, preprocessor lines and
# whatever is for C++ alone are left out, and so is all that stands in braces.
declared() {
  cat "$@" | awk '
    /^#ifdef __cplusplus/ { skipping = 1 }
    skipping { if (/^#endif/) skipping = 0; next }
    { text = text $0 "\n" }
    END {
      while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
        text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
      gsub(/\\\n/, " ", text)
      gsub(/(^|\n)#[^\n]*/, "\n", text)
      gsub(/\n/, " ", text)
      while (match(text, /\{[^{}]*\}/)) text = substr(text, 1, RSTART - 1) " BODY; " substr(text, RSTART + RLENGTH)
      count = split(text, statements, ";")
      for (i = 1; i <= count; i++) {
        if (statements[i] ~ /typedef|BODY/ || !match(statements[i], /remat_[a-z0-9_]+ *\(/)) continue
        name = substr(statements[i], RSTART, RLENGTH); sub(/ *\(/, "", name); print name
      }
    }' | sort -u
}

# differ TITLE FILE FILE: fails where two sorted lists are not the same.
differ() {
  comm -3 "$2" "$3" >"$work/difference"
  [ -s "$work/difference" ] || return 0
  echo "$1:" >&2
  cat "$work/difference" >&2
  failed=1
}

declared include/remat/*.h >"$work/today"
declared tests/abi/remat_0_1.h >"$work/release"
sort -u "$work/today" "$work/release" >"$work/headers"
sed -n 's/^ *\(remat_[a-z0-9_]*\);$/\1/p' src/libremat.map | sort >"$work/map"
nm -D --defined-only "$REMAT_SHARED" | awk '{ print $NF }' | sort >"$work/library"

[ "$(wc -l <"$work/release")" -ge 200 ] || { echo "the functions of 0.1 were not found" >&2; failed=1; }
differ "only in the headers, or (indented) only in src/libremat.map" "$work/headers" "$work/map"
differ "only in src/libremat.map, or (indented) only in the shared library" "$work/map" "$work/library"

# The program of tests/abi calls every function of 0.1.
nm -u "$REMAT_PROGRAM_0_1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | grep '^remat_' | sort >"$work/called"
differ "only in the headers of 0.1, or (indented) only in tests/abi/program_0_1*.c" "$work/release" "$work/called"

[ "$failed" = 0 ]
