/* A locale whose decimal point is a comma, on machines that have none installed. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>

/* Makes the locale, for uselocale; `point` is its decimal point, such as ",". It stays until the program ends. Fails the
 * test where the C library cannot load it. */
locale_t comma_locale_make(const char *point);

/* The same for setlocale(LC_NUMERIC): all threads without a locale of their own have it until setlocale is called again. */
void comma_locale_set(const char *point);

#endif
