/* "Did you mean": which of some names is most like one that was mistyped. Case does not count, and '-' is '_'. */
#ifndef REMAT_BASE_NEAREST_H
#define REMAT_BASE_NEAREST_H

#include <stddef.h>

/* How unlike two names are: letters to insert, drop or change, at most `most` + 1. */
size_t name_distance(const char *a, const char *b, size_t most);

/* How many letters a mistyped name may differ in. */
size_t name_distance_limit(const char *name);

/* The name of a list that is most like `name`, the first of equals; NULL where none is close. */
const char *nearest_name(const char *name, const char *const *names, size_t count);

#endif
