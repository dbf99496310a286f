/* Binary search. */
#ifndef REMAT_BASE_SEARCH_H
#define REMAT_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The first of values[low..high-1], which rise, that is above `limit`; `high` where none is. */
static inline size_t remat_first_above(const uint64_t *values, size_t low, size_t high, uint64_t limit)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] <= limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
