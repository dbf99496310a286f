# shellcheck shell=sh
# Small words for tests of the command line. Sourced; needs REMAT, the program.
# A test script ends with `finish`, which fails if anything before it did. What stands behind it by mistake counts as well.
work=$(mktemp -d)
trap 'code=$?; rm -rf "$work"; [ "$failures" = 0 ] || [ "$code" != 0 ] || code=1; exit "$code"' EXIT
. tests/cli/support/environment.sh
export HOME="$work"
failures=0

# expect CODE ARGUMENT...: runs remat; the exit code must be CODE. Leaves $work/out and $work/err.
expect() {
  wanted=$1
  shift
  code=0
  "$REMAT" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  [ "$code" = "$wanted" ] || complain "remat $*: exit code $code, wanted $wanted; it said: $(head -c 600 "$work/err")"
}

# expect_stdin CODE FILE ARGUMENT...: the same with FILE as standard input.
expect_stdin() {
  wanted=$1 input=$2
  shift 2
  code=0
  "$REMAT" "$@" >"$work/out" 2>"$work/err" <"$input" || code=$?
  [ "$code" = "$wanted" ] || complain "remat $* <$input: exit code $code, wanted $wanted"
}

complain() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# part_skipped WHY: something that only a part of the test needs is missing. `make check` lists these lines.
part_skipped() { echo "[  SKIPPED ] part of $(basename "$0" .sh): $*"; }

# has_python: whether python3 is there to read what was written.
has_python() { command -v python3 >/dev/null 2>&1 || { part_skipped "python3 is not installed"; return 1; }; }

# out TEXT / err TEXT: what the last run printed must contain TEXT.
out() { grep -qF -- "$1" "$work/out" || complain "stdout has no '$1': $(head -c 600 "$work/out")"; }
err() { grep -qF -- "$1" "$work/err" || complain "stderr has no '$1': $(head -c 600 "$work/err")"; }
silent() { [ ! -s "$work/$1" ] || complain "$1 is not empty: $(head -c 300 "$work/$1")"; }

# file NAME: writes standard input to $work/NAME.
file() { cat >"$work/$1"; }

finish() { [ "$failures" = 0 ]; }
