#!/bin/sh
# The program prints the same in a locale with decimal commas, and reads the same. The locale is made here, as none need be
# installed: the 52 bytes of LC_NUMERIC are what localedef writes (tests/support/comma_locale.c says what they are).
. tests/cli/support/expect.sh
model=examples/models/spirals.ini

mkdir -p "$work/locales/comma"
printf '\024\021\003\040\006\000\000\000\040\000\000\000\042\000\000\000\044\000\000\000\050\000\000\000\054\000\000\000\060\000\000\000,\000.\000\003\003\000\000,\000\000\000.\000\000\000C\000' \
  >"$work/locales/comma/LC_NUMERIC"

# in_comma_locale COMMAND...: runs a command with that locale in its environment.
in_comma_locale() { env -u LC_ALL LANG=C LC_NUMERIC=comma LOCPATH="$work/locales" "$@"; }

case $(in_comma_locale env printf '%.2f' 0 2>/dev/null) in
  0,00) ;;
  *) echo "the C library does not load the locale"; exit 77 ;;
esac

# same ARGUMENT...: remat prints the same in both locales.
same() {
  expect 0 "$@"
  in_comma_locale "$REMAT" "$@" >"$work/comma" 2>/dev/null </dev/null || complain "remat $*: fails where points are commas"
  cmp -s "$work/out" "$work/comma" || complain "remat $*: prints something else where points are commas"
}
same layers --json
same layers fully_connected
same summary "$model"
same plan "$model" --strategy selective:0.5
same sweep "$model"
same sweep "$model" --csv
expect 0 train "$model" -q -j 1 --steps 3 --save "$work/plain.st"
in_comma_locale "$REMAT" train "$model" -q -j 1 --steps 3 --save "$work/comma.st" || complain "a training fails"
cmp "$work/plain.st" "$work/comma.st" || complain "a checkpoint has other bytes"
same predict "$model" -j 1 --weights "$work/plain.st"
same eval "$model" -j 1 --weights "$work/plain.st"
finish
