/* Types, properties and choices may be written in any case, with '-' for '_'. */
#ifndef REMAT_BASE_NAMES_H
#define REMAT_BASE_NAMES_H

#include <stdbool.h>

static inline char name_letter(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return (char)(letter - 'A' + 'a');
    return letter == '-' ? '_' : letter;
}

static inline bool names_equal(const char *a, const char *b)
{
    while (*a && name_letter(*a) == name_letter(*b))
        a++, b++;
    return name_letter(*a) == name_letter(*b);
}

#endif
