#!/bin/sh
# Builds the benchmarks and runs them all, or the ones named in ONLY="plan ...". What docs/benchmarks.md shows between the
# marks of a benchmark is replaced by what it printed.
set -eu
jobs=$1
page=docs/benchmarks.md
out=$(mktemp)
trap 'rm -f "$out" "$out.page"' EXIT

# record NAME INDENT: puts the output between the marks <!-- NAME --> and <!-- end NAME --> of the page.
record() {
  grep -q "^<!-- $1 -->" $page || return 0
  awk -v name="$1" -v indent="$2" -v output="$out" '
    $0 == "<!-- end " name " -->" { inside = 0 }
    !inside { print }
    $0 == "<!-- " name " -->" {
      inside = 1
      print ""
      while ((getline line < output) > 0) print (line == "" ? "" : indent line)
      print ""
    }' $page >"$out.page"
  cp "$out.page" $page
}

wanted() { case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }

unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/configure.sh build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON
cmake --build build-check -j "$jobs" -- --no-print-directory -s >/dev/null
for program in build-check/bench/bench_*; do
  if [ ! -x "$program" ] || [ ! -f "$program" ]; then continue; fi
  name=${program##*/bench_}
  wanted "$name" || continue
  printf '\n== %s\n' "$name"
  "$program" | tee "$out"
  record "$name" "    "
done
if wanted gpt; then
  printf '\n== gpt\n'
  build-check/remat bench examples/models/gpt_bench.ini --steps 12 |
    sed -n '1p;/^embedding/p;/^h3/p;/^norm/p;/^head/p;/^all layers/,$p' | tee "$out"
  record gpt "    "
fi
if wanted torch; then
  printf '\n== torch\n'
  ONLY="${ROWS:-}" scripts/compare_torch.sh build-check/remat | tee "$out"
  record torch ""
fi
