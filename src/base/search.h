/* Binary search. */
#ifndef REMAT_BASE_SEARCH_H
#define REMAT_BASE_SEARCH_H

#include <stddef.h>

/* The first i of low ... high-1 for which the condition holds; `high` where it holds for none. Once it holds, it must hold
 * for all that follow. */
#define REMAT_FIRST(i, low, high, condition)      \
    ({                                            \
        size_t low_ = (low), high_ = (high);      \
        while (low_ < high_) {                    \
            size_t i = low_ + (high_ - low_) / 2; \
            if (condition)                        \
                high_ = i;                        \
            else                                  \
                low_ = i + 1;                     \
        }                                         \
        low_;                                     \
    })

#endif
