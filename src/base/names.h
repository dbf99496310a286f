/* Types, properties and choices may be written in any case, with '-' for '_'. */
#ifndef REMAT_BASE_NAMES_H
#define REMAT_BASE_NAMES_H

#include <stdbool.h>

static inline char layer_name_letter(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return (char)(letter - 'A' + 'a');
    return letter == '-' ? '_' : letter;
}

static inline bool layer_names_equal(const char *a, const char *b)
{
    while (*a && layer_name_letter(*a) == layer_name_letter(*b))
        a++, b++;
    return layer_name_letter(*a) == layer_name_letter(*b);
}

#endif
