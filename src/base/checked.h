/* Sums and products of sizes and costs with a check against 2^63, the limit of every figure in a profile. */
#ifndef REMAT_BASE_CHECKED_H
#define REMAT_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define REMAT_LIMIT ((uint64_t)1 << 63) /* every figure is below */

/* *total += more. Returns false if that reaches the limit; *total is then unchanged. */
static inline bool remat_add(uint64_t *total, uint64_t more)
{
    uint64_t sum;
    if (__builtin_add_overflow(*total, more, &sum) || sum >= REMAT_LIMIT)
        return false;
    *total = sum;
    return true;
}

/* *product = a * b. Returns false if that reaches the limit. */
static inline bool remat_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result) || result >= REMAT_LIMIT)
        return false;
    *product = result;
    return true;
}

/* a + b, or UINT64_MAX if that does not fit: for bounds and comparisons. */
static inline uint64_t remat_add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
