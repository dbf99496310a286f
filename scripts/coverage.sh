#!/bin/sh
# Runs all tests with counters in the library and in the program, writes an HTML report, prints the coverage of every
# folder, and fails where the branches of a folder are below its bound: coverage.sh JOBS
#
# What counts: every line and every branch that the compiler makes of src/ and cli/ without optimization. A file that is
# compiled several times (kernels for each instruction set, element types) is counted once: a branch has run if it ran in one
# of its builds. Left out are branches on lines without source code, which gcovr finds; whole builds of the kernels for
# instruction sets that this processor lacks; and src/backend/cuda, which only a GPU runs (`make check-cuda`). The last lines
# say so. No source has a marker that leaves out more.
set -eu
jobs=$1
folder=build-coverage
unset MAKEFLAGS MFLAGS MAKELEVEL
unset CFLAGS LDFLAGS CMAKE_C_COMPILER_LAUNCHER # the counters are those of this compiler and these options
export CC=gcc

scripts/configure.sh $folder -DREMAT_TESTS=ON -DREMAT_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
find $folder -name '*.gcda' -delete
cmake --build $folder -j "$jobs" -- --no-print-directory -s
# `make check` judges the tests. Here some may fail, because the counters are files that every program writes when it ends,
# and an installed library needs gcov. Left out are tests that take many minutes without optimization and run nothing that
# others do not. Programs that are killed may leave broken counters, to which nothing can be added: those tests come first,
# and what they broke is removed.
killing='faults|train|save_instead|memory_limit'
slow='install|test_bits|test_reference_losses|reference_losses|test_fused_steps|test_quiet_steps'
run_tests() {
  ctest --test-dir $folder -j "$jobs" --output-on-failure --no-tests=error --output-log $folder/tests.log "$@" ||
    echo "Some tests failed with counters."
}
run_tests -R "^($killing)\$"
find $folder -name '*.gcda' | while read -r counters; do
  [ "$(head -c 4 "$counters" | tr -d '\0')" = adcg ] || rm "$counters"
done
run_tests -E "^($killing|$slow)\$"

mkdir -p $folder/parts $folder/html
rm -f $folder/parts/*
left_out="src/backend/cuda (only a GPU runs it)"
# lacks FLAG PART: whether the processor cannot run this build of the kernels.
lacks() {
  ! grep -qw "$1" /proc/cpuinfo || return 1
  left_out="$left_out, the kernels for ${2#remat_} (this processor lacks $1)"
}
for part in remat_objects remat_cli remat_reference_fp32 remat_reference_fp64 remat_portable remat_avx2 remat_avx512 \
  remat_avx512bf16 remat_amx; do
  case $part in
    remat_avx2) ! lacks avx2 $part || continue ;;
    remat_avx512) ! lacks avx512f $part || continue ;;
    remat_avx512bf16) ! lacks avx512_bf16 $part || continue ;;
    remat_amx) ! lacks amx_bf16 $part || continue ;;
  esac
  [ -d $folder/CMakeFiles/$part.dir ] || continue
  # Programs that end in the middle leave calls that "returned -2" times. gcovr counts no calls, but refuses such a line.
  gcovr --root . --filter src/ --filter cli/ --exclude-unreachable-branches --exclude-throw-branches \
    --gcov-ignore-parse-errors --json $folder/parts/$part.json $folder/CMakeFiles/$part.dir
  # A function may stand at another line in another build, which gcovr does not merge. Lines and branches are enough.
  python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
for file in data["files"]:
    file["functions"] = []
json.dump(data, open(sys.argv[1], "w"))' $folder/parts/$part.json
done
set --
for part in "$folder"/parts/*.json; do set -- "$@" --add-tracefile "$part"; done
gcovr --root . "$@" --exclude-unreachable-branches --exclude-throw-branches --csv $folder/coverage.csv \
  --html-details $folder/html/index.html --html-title "Coverage of remat"

# src/plan/chain and src/plan/graph are two folders; src/backend is one with all below it.
code=0
awk -F, '
  FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  {
    count = split($at["filename"], part, "/")
    name = part[1]
    if (name == "src") name = name "/" part[2]
    if (name == "src/plan") name = name "/" part[3]
    if (!(name in lines)) order[++folders] = name
    lines[name] += $at["line_total"]; lines_run[name] += $at["line_covered"]
    branches[name] += $at["branch_total"]; branches_run[name] += $at["branch_covered"]
  }
  function percent(part, whole) { return whole ? 100 * part / whole : 100 }
  END {
    printf "%-16s %15s %8s %17s %8s %6s\n", "folder", "lines run", "%", "branches run", "%", "bound"
    for (i = 1; i <= folders; i++) {
      name = order[i]
      bound = name ~ /^src\/(base|graph|arena|plan\/.*)$/ ? 95 : 90
      share = percent(branches_run[name], branches[name])
      low = share < bound
      below += low
      printf "%-16s %7d/%7d %7.1f%% %8d/%8d %7.1f%% %5d%%%s\n", name, lines_run[name], lines[name],
        percent(lines_run[name], lines[name]), branches_run[name], branches[name], share, bound, low ? "  below" : ""
    }
    if (below) printf "%d %s below the bound\n", below, below == 1 ? "folder is" : "folders are"
    exit below > 0
  }' $folder/coverage.csv || code=1
echo "Left out: $left_out"
echo "Line by line: $folder/html/index.html"
exit $code
