#!/bin/sh
# Numbers in files and messages do not depend on the locale (docs/architecture.md). In the library, base/number_text.c alone
# prints and reads floating-point numbers; the program never sets a locale.
. tests/cli/support/expect.sh
folders="src/*/*.[ch] src/*/*/*.[ch]"

# shellcheck disable=SC2086 # the folders are patterns
found=$(grep -nwE '(strto(d|f|ld)|wcsto(d|f|ld))(_l)?|atof|v?f?w?scanf|v?sn?printf_l|vsn?printf|vd?f?printf|v?asprintf' $folders |
  grep -v '^src/base/number_text\.c:' || true)
[ -z "$found" ] || complain "only base/number_text.c may use these: $found"

# Letters are compared as ASCII: in a Turkish locale i is not the small letter of I.
# shellcheck disable=SC2086
found=$(grep -nwE '(new|use|set|free|dup)locale|localeconv|strn?casecmp|strcasestr|strcoll|strxfrm|is(alpha|alnum|digit|space|blank|upper|lower|punct|print|cntrl|graph)|to(upper|lower)|ctype\.h' \
  $folders | grep -v '^src/base/number_text\.c:' || true)
[ -z "$found" ] || complain "these depend on the locale: $found"

# Calls of printf and its relatives with floating-point numbers; base/number_text.h has text_print for them.
# shellcheck disable=SC2086
found=$(grep -HzoE '\<(d?f?printf|sn?printf|sscanf) *\(("([^"\\]|\\.)*"|[^";])*' $folders | tr '\n\0' ' \n' | sed 's/%%//g' |
  grep -E '"[^"]*%[-+ #0]*[0-9*]*(\.[0-9*]*)?[lL]?[aAeEfFgG]' | grep -v '^src/base/number_text\.c:' || true)
[ -z "$found" ] || complain "floating-point numbers in the program's locale: $found"

found=$(grep -nE '\<(new|use|set)locale *\(' cli/*.[ch] || true)
[ -z "$found" ] || complain "the program sets a locale: $found"
finish
