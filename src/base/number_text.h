/* Numbers in text. They have a decimal point, whatever locale the program or the thread has set. Nothing else in the library
 * prints or reads floating-point numbers. Safe across threads. */
#ifndef REMAT_BASE_NUMBER_TEXT_H
#define REMAT_BASE_NUMBER_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* As snprintf prints in the C locale. */
int text_print(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
int text_print_list(char *text, size_t room, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* The shortest text that reads back as the same number; "null" where it is not finite, as JSON has no such number. */
enum { NUMBER_TEXT = 32 };
void number_print(double value, char text[NUMBER_TEXT]);

/* Reads a finite decimal number such as -1.5e-3 at `text`; *end is behind it. False where there is none. */
bool number_parse(const char *text, const char **end, double *value);

/* Reads what "%a" prints of a number that is not negative: 0x1.8p+1 or inf, and nothing behind it. */
bool number_parse_hex(const char *text, double *value);

#endif
