#include "base/nearest.h"

#include "base/names.h"

#include <string.h>

size_t name_distance(const char *a, const char *b, size_t most)
{
    enum { LONGEST = 64 };
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > LONGEST || columns > LONGEST || (rows > columns ? rows - columns : columns - rows) > most)
        return most + 1;
    size_t line[LONGEST + 1];
    for (size_t j = 0; j <= columns; j++)
        line[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t change = diagonal + (name_letter(a[i - 1]) != name_letter(b[j - 1]));
            diagonal = line[j];
            size_t other = (line[j] < line[j - 1] ? line[j] : line[j - 1]) + 1;
            line[j] = change < other ? change : other;
        }
    }
    return line[columns] < most + 1 ? line[columns] : most + 1;
}

size_t name_distance_limit(const char *name)
{
    return strlen(name) / 3 + 1;
}

const char *nearest_name(const char *name, const char *const *names, size_t count)
{
    size_t least = name_distance_limit(name) + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = name_distance(names[i], name, least);
        if (distance < least) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
