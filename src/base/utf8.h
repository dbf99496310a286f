/* UTF-8: whether a text is well-formed, and how it is shown to people. */
#ifndef REMAT_BASE_UTF8_H
#define REMAT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a terminated string is well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF. */
bool remat_utf8_valid(const char *text);

/* Takes one character from the text, which must not be at its end, and returns its bytes. A byte that is no UTF-8 is
 * taken alone, and *code is UTF8_INVALID. */
#define UTF8_INVALID UINT32_MAX
size_t utf8_take(const char *text, uint32_t *code);

/* Whether a terminal may act on the character instead of showing it: control characters (C0, DEL, C1), line separators
 * and marks that turn the direction of writing. UTF8_INVALID is one, too. */
bool utf8_is_control(uint32_t code);

/* Takes one character as utf8_take does, and writes what is shown for it to `shown`, terminated: itself, or an escape
 * such as \n, \x1b or \u202e. */
enum { UTF8_SHOWN = 8 };
size_t utf8_show(const char *text, char shown[UTF8_SHOWN]);

#endif
