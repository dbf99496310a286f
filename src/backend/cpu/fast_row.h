/* The passes over a row that softmax and cross entropy share. */
#ifndef REMAT_BACKEND_CPU_FAST_ROW_H
#define REMAT_BACKEND_CPU_FAST_ROW_H

#include "backend/cpu/fast_math.h"

/* The largest value of a row that is not empty; NaN is passed over (the exponentials will be NaN). */
static inline float fast_row_max(size_t count, const float *x)
{
    if (count < FAST_LANES) {
        float largest = x[0];
        for (size_t i = 1; i < count; i++)
            largest = x[i] > largest ? x[i] : largest;
        return largest;
    }
    /* The last vector overlaps the one before, which does not change the largest. */
    fast_vector even = fast_load(x + count - FAST_LANES), odd = even;
    size_t i = 0;
    for (; i + 2 * FAST_LANES <= count; i += 2 * FAST_LANES) {
        even = fast_max(fast_load(x + i), even);
        odd = fast_max(fast_load(x + i + FAST_LANES), odd);
    }
    for (; i + FAST_LANES <= count; i += FAST_LANES)
        even = fast_max(fast_load(x + i), even);
    return fast_max_lanes(fast_max(even, odd));
}

/* y = exp(x - largest), and the sum of that. Without y only the sum. */
FAST_INLINE float fast_row_exp(size_t count, const float *x, float largest, float *y)
{
    fast_vector sum = {0};
    if (y) {
#define STEP(LOAD, STORE, i, FIRST)                      \
    do {                                                 \
        fast_vector e = fast_exp(LOAD(x + i) - largest); \
        STORE(y + i, e);                                 \
        sum += FIRST(e);                                 \
    } while (0)
        FAST_EACH(count, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) sum += FIRST(fast_exp(LOAD(x + i) - largest))
        FAST_EACH(count, STEP);
#undef STEP
    }
    return fast_sum_lanes(sum);
}

FAST_INLINE void fast_row_scale(size_t count, float factor, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(y + i) * factor)
    FAST_EACH(count, STEP);
#undef STEP
}

#endif
