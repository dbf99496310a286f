/* Binary search. */
#ifndef REMAT_BASE_SEARCH_H
#define REMAT_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether what is looked for is at `position` or before it. */
typedef bool (*remat_reached_fn)(const void *user, size_t position);

/* The first position from `low` on, below `high`, that `reached` holds for; `high` where there is none. It must hold for
 * every position behind one that it holds for. */
static inline __attribute__((always_inline)) size_t remat_search(size_t low, size_t high, remat_reached_fn reached,
                                                                 const void *user)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reached(user, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
