#!/bin/sh
# Files that never end, that nobody writes, that are no files: every command that reads one says so and ends.
# `timeout` only bounds a command that hangs; what is judged is that it ended by itself, and how.
set -eu
. tests/cli/support/expect.sh
. tests/cli/support/models.sh

# refuse CODES WORDS ARGUMENT...: remat must end by itself with one of the exit codes and say WORDS.
refuse() {
  codes=$1 words=$2
  shift 2
  code=0
  timeout 600 "$REMAT" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  case " $codes " in
    *" $code "*) ;;
    *) complain "remat $*: exit code $code, wanted one of $codes; it said: $(head -c 300 "$work/err")" ;;
  esac
  grep -qE -- "$words" "$work/err" || complain "remat $*: no '$words' in: $(head -c 300 "$work/err")"
}

spiral_model
byte_model
printf '{"format": "remat-profile", "version": 1, "layers": [
  {"index": 0, "type": "ffn", "activation_bytes": 4, "recompute_flops": 1}]}' |
  file profile.json
expect 0 plan "$work/profile.json" -o "$work/plan.json"
expect 0 train "$work/spirals.ini" --steps 1 --quiet --save "$work/spirals.safetensors"
expect 0 train "$work/bytes.ini" --steps 1 --quiet --save "$work/bytes.safetensors"
mkfifo "$work/pipe"
truncate -s 10G "$work/sparse" 2>/dev/null || rm -f "$work/sparse"

# every_reader CODES WORDS FILE: FILE in every place where a command reads a text.
every_reader() {
  for command in plan sweep summary fit arena report train profile bench eval predict generate; do
    set -- "$1" "$2" "$3" "$command"
    case $command in
      eval | predict | generate) refuse "$1" "$2" "$command" "$3" --weights "$work/bytes.safetensors" ;;
      report) refuse "$1" "$2" report "$3" -o "$work/page.html" ;;
      *) refuse "$1" "$2" "$command" "$3" ;;
    esac
  done
  refuse "$1" "$2" check "$3" --profile "$work/profile.json"
  refuse "$1" "$2" check "$work/plan.json" --profile "$3"
  refuse "$1" "$2" report "$work/plan.json" --profile "$3" -o "$work/page.html"
  refuse "$1" "$2" train "$work/spirals.ini" --profile "$3"
  refuse "$1" "$2" train "$work/spirals.ini" --plan "$3"
}
every_reader 3 'NUL byte' /dev/zero
every_reader 6 'folder' "$work"
for odd in "$work/sparse" /dev/urandom; do
  [ -e "$odd" ] || { part_skipped "no sparse files here"; continue; }
  refuse '2 3' '.' plan "$odd"
  refuse '2 3' '.' fit "$odd"
  refuse '2 3' '.' arena "$odd"
  refuse '2 3' '.' check "$odd" --profile "$work/profile.json"
done

# Weights and data are read at any place: only regular files will do, and folders that have some.
for odd in /dev/zero "$work" "$work/pipe"; do
  code=6
  [ "$odd" != "$work" ] || code=3
  refuse $code 'regular|folder has no weights' train "$work/spirals.ini" --resume "$odd"
  refuse $code 'regular|folder has no weights' train "$work/spirals.ini" --weights "$odd"
  refuse $code 'regular|folder has no weights' generate "$work/bytes.ini" --weights "$odd"
  sed "s|spirals.csv|$odd|" "$work/spirals.ini" >"$work/odd.ini"
  refuse 6 'regular|folder' train "$work/odd.ini" --steps 1
  sed "s|abc.txt|$odd|" "$work/bytes.ini" >"$work/odd.ini"
  refuse 6 'regular|folder' train "$work/odd.ini" --steps 1
done
if [ -f "$work/sparse" ]; then
  refuse 3 '.' train "$work/spirals.ini" --resume "$work/sparse"
  sed "s|spirals.csv|$work/sparse|" "$work/spirals.ini" >"$work/odd.ini"
  refuse 3 'NUL byte' train "$work/odd.ini" --steps 1
fi

# A pipe: nobody writes; somebody writes, but late.
refuse 6 'nobody writes' plan "$work/pipe"
refuse 6 'nobody writes' train "$work/spirals.ini" --profile "$work/pipe"
{ sleep 0.3; cat "$work/profile.json" >"$work/pipe"; } &
expect 0 plan "$work/pipe"
wait

# Text without an end: one reader of each format. The pipe's writer ends when nobody reads any more.
endless() {
  codes=$1 words=$2 text=$3
  shift 3
  code=0
  yes "$text" | timeout 600 "$REMAT" "$@" - >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$codes" ] || complain "remat $* <(yes '$text'): exit code $code, wanted $codes"
  grep -qF -- "$words" "$work/err" || complain "remat $*: no '$words' in: $(head -c 300 "$work/err")"
}
# A sanitizer reads slowly and takes its own share of memory.
if [ "${REMAT_SANITIZE:-OFF}" = OFF ]; then
  endless 3 'more than 256 MiB without a value' '                                ' check --profile "$work/profile.json"
  endless 3 'longer than 256 MiB' '; comment comment comment comment' fit
  endless 3 'longer than 256 MiB' '                                ' arena
  # The same where memory ends first: growth is refused, and the command ends.
  # shellcheck disable=SC3045 # dash has -v
  limit_memory() { ulimit -v 400000; }
  code=0
  (limit_memory && yes '# comment comment comment comment' | timeout 600 "$REMAT" plan - --threads 1) \
    >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = 5 ] || complain "plan in 400 MB: exit code $code, wanted 5; it said: $(head -c 300 "$work/err")"
  code=0
  (limit_memory && timeout 600 "$REMAT" plan /dev/zero --threads 1) >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = 3 ] || complain "plan /dev/zero in 400 MB: exit code $code, wanted 3"
fi
finish
