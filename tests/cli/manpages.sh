#!/bin/sh
# Every command has a manual page with all its options and examples.
. tests/cli/support/expect.sh

scripts/manual.sh "$REMAT" "$work/man" || complain "the pages cannot be made"
commands=$("$REMAT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
  page=$work/man/remat-$command.1
  [ -f "$page" ] || { complain "remat-$command.1 is missing"; continue; }
  grep -q "Xr remat-$command 1" "$work/man/remat.1" || complain "remat.1 does not name remat-$command"
  "$REMAT" "$command" --help | grep -o '^ *\(-., \)\?--[a-z-]*' | grep -o -- '--[a-z-]*' | sort -u >"$work/help"
  sed -n '/^\.Sh OPTIONS/,/^\.Sh /p' "$page" | sed 's/\\-/-/g' | grep '^\.It' | grep -o 'Fl -[a-z-]*' | sed 's/Fl /-/' | sort -u >"$work/page"
  diff "$work/help" "$work/page" >"$work/diff" || complain "remat-$command.1 and --help differ: $(cat "$work/diff")"
  [ -s "$work/help" ] || complain "remat $command --help lists no options"
  for section in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" EXAMPLES "SEE ALSO"; do
    grep -q "^\.Sh $section" "$page" || complain "remat-$command.1 has no $section"
  done
done
for page in man/*.mdoc; do
  name=$(basename "$page" .mdoc)
  echo " $commands " | tr '\n' ' ' | grep -q " $name " || complain "$page is for no command"
done
# A checker of the language, where there is one.
if command -v mandoc >/dev/null 2>&1; then
  mandoc -T lint -W warning "$work"/man/*.1 >"$work/lint" || true
  [ ! -s "$work/lint" ] || complain "mandoc: $(head -5 "$work/lint")"
else
  part_skipped "mandoc is not installed"
fi
finish
