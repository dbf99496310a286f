#include "data/data_number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *text, const char **end, double *value)
{
    /* strtod also takes blanks, hexadecimal digits, "nan" and "inf", which data has not: it must stop where these
     * end. */
    size_t length = strspn(text, "+-.0123456789eE");
    const char *digits = text + strspn(text, "+-.");
    if (length == 0 || *digits < '0' || *digits > '9')
        return false;
    /* For "C" the library gives out a locale that it has already. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *behind;
    *value = plain ? strtod_l(text, &behind, plain) : strtod(text, &behind);
    if (plain)
        freelocale(plain);
    *end = behind;
    return behind == text + length && isfinite(*value);
}

void number_print(double value, char text[NUMBER_TEXT])
{
    if (!isfinite(value)) {
        snprintf(text, NUMBER_TEXT, "null");
        return;
    }
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = plain ? uselocale(plain) : (locale_t)0;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}
