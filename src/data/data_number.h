/* Decimal numbers that always have a point, whatever locale the program has set. */
#ifndef REMAT_DATA_DATA_NUMBER_H
#define REMAT_DATA_DATA_NUMBER_H

#include <stdbool.h>

/* Reads a finite decimal number such as -1.5e-3 at `text`; *end is behind it. False where there is none. */
bool number_parse(const char *text, const char **end, double *value);

/* The shortest text that reads back as the same number; "null" where it is not finite, as JSON has no such number. */
enum { NUMBER_TEXT = 32 };
void number_print(double value, char text[NUMBER_TEXT]);

#endif
