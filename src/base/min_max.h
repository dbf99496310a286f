/* The smaller and the larger of two numbers, and how many bits a number has. */
#ifndef REMAT_BASE_MIN_MAX_H
#define REMAT_BASE_MIN_MAX_H

#include <stdint.h>

static inline uint64_t remat_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t remat_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 has no bits, 1 has one, 2 and 3 have two. */
static inline unsigned remat_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

#endif
