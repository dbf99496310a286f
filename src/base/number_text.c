#include "base/number_text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the C library has this one already: it cannot fail */
}

static locale_t plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain;
}

/* ---- printing ---- */

int text_print_list(char *text, size_t room, const char *format, va_list arguments)
{
    locale_t before = uselocale(plain_locale());
    int length = vsnprintf(text, room, format, arguments);
    uselocale(before);
    return length;
}

int text_print(char *text, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = text_print_list(text, room, format, arguments);
    va_end(arguments);
    return length;
}

void number_print(double value, char text[NUMBER_TEXT])
{
    if (!isfinite(value)) {
        memcpy(text, "null", sizeof "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        text_print(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod_l(text, NULL, plain_locale()) == value)
            break;
    }
}

/* ---- reading ---- */

bool number_parse(const char *text, const char **end, double *value)
{
    /* strtod also takes blanks, hexadecimal digits, "nan" and "inf", which data has not: it must stop where these
     * end. */
    size_t length = strspn(text, "+-.0123456789eE");
    const char *digits = text + strspn(text, "+-.");
    if (length == 0 || *digits < '0' || *digits > '9')
        return false;
    char *behind;
    *value = strtod_l(text, &behind, plain_locale());
    *end = behind;
    return behind == text + length && isfinite(*value);
}

bool number_parse_hex(const char *text, double *value)
{
    *value = INFINITY;
    if (strcmp(text, "inf") == 0)
        return true;
    char *end;
    if (strncmp(text, "0x", 2) != 0)
        return false;
    *value = strtod_l(text, &end, plain_locale());
    return end > text + 2 && *end == '\0' && isfinite(*value);
}
