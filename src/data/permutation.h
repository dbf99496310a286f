/* A random order of 0 .. count-1 without an array: entry k is a pure function of (seed, epoch, k). So shuffling takes
 * no memory, and a run that resumes in the middle of an epoch has nothing to restore. */
#ifndef REMAT_DATA_PERMUTATION_H
#define REMAT_DATA_PERMUTATION_H

#include <remat/random.h>

typedef struct permutation {
    uint64_t count;
    uint32_t bits; /* the network permutes 0 .. 2^bits - 1 */
    remat_random stream;
} permutation;

/* The order of an epoch. `count` may be anything up to 2^62. */
permutation permutation_make(uint64_t count, uint64_t seed, uint64_t epoch);

/* The entry at `position`, which is below count. */
uint64_t permutation_at(const permutation *order, uint64_t position);

#endif
