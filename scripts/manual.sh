#!/bin/sh
# Writes the manual pages from what the program says of itself, so that the two cannot disagree:
#   manual.sh PROGRAM FOLDER [EMULATOR]
# `remat COMMAND --help` gives synopsis, description, options and examples; man/COMMAND.mdoc, where there is one, is what
# is worth adding. The page of the program itself is man/remat.1.in with the list of commands in its place.
set -eu
program=$1 folder=$2
shift 2
emulator=$* # what runs the program where it is for another processor
# shellcheck disable=SC2086 # a command and its options
remat() { $emulator "$program" "$@"; }
here=$(dirname "$0")
mkdir -p "$folder"
export ARGP_HELP_FMT=rmargin=250 LC_ALL=C.UTF-8
version=$(remat --version)
commands=$(remat --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

for command in $commands; do
  summary=$(remat --help | sed -n "s/^  $command  *//p")
  extra=$here/../man/$command.mdoc
  [ -f "$extra" ] || extra=/dev/null
  remat "$command" --help | awk -v command="$command" -v summary="$summary" -v version="$version" -v extra="$extra" \
    -f "$here/manual.awk" >"$folder/remat-$command.1"
done

# One line a command, then the page with two places to fill in.
{
  remat --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1 \2/p' | sort
  echo
  cat "$here/../man/remat.1.in"
} | awk -v version="$version" '
  !page && $0 == "" { page = 1; next }
  !page { name = $1; sub(/^[a-z]+ /, ""); list = list ".It Xr remat-" name " 1\n" $0 "\n"; references = references ".Xr remat-" name " 1 ,\n"; next }
  $0 == "@COMMANDS@" { printf "%s", list; next }
  $0 == "@REFERENCES@" { sub(/ ,\n$/, "\n", references); printf "%s", references; next }
  { gsub(/@VERSION@/, version); print }' >"$folder/remat.1"
