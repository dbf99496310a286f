/* A locale whose decimal point is a comma, on machines that have none installed. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>

/* Makes it the program's, by setlocale(LC_NUMERIC): all threads without a locale of their own have it until setlocale is
 * called again. `point` is the decimal point, such as ",". Fails the test where the C library cannot load it. */
void comma_locale_set(const char *point);

/* Makes it for uselocale; the program's own is then "C". The caller frees it with freelocale. */
locale_t comma_locale_make(const char *point);

#endif
