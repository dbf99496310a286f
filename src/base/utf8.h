#ifndef REMAT_BASE_UTF8_H
#define REMAT_BASE_UTF8_H

#include <stdbool.h>

/* Whether a terminated string is well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF. */
bool remat_utf8_valid(const char *text);

#endif
