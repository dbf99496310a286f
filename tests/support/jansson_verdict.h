/* Jansson's opinion, apart from the library's own JSON reader: the two use the same names. */
#ifndef TESTS_JANSSON_VERDICT_H
#define TESTS_JANSSON_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether Jansson takes the text as one JSON value. */
bool jansson_accepts(const char *text, size_t length);

/* Whether Jansson takes the terminated text as a string: it must be UTF-8. */
bool jansson_accepts_string(const char *text);

#endif
