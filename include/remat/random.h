/* Remat: random numbers by position.
 *
 * The generator is counter-based: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011). Number k of a stream depends on
 * the stream and on k only. A recomputed layer asks for the same positions and gets the same numbers, in any order and
 * from any thread. No state has to be saved.
 *
 * Threads: every function here is pure and may be called from any thread. */
#ifndef REMAT_RANDOM_H
#define REMAT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stream of random numbers. Make it with remat_random_stream; it may be copied. This struct never changes. */
typedef struct remat_random {
    uint32_t key[2];
    uint32_t high[2];
} remat_random;

/* The stream of a seed, a layer and a training step. Different triples give independent streams. */
remat_random remat_random_stream(uint64_t seed, uint32_t layer, uint32_t step);

/* 64 random bits: number `position` of the stream. */
uint64_t remat_random_bits(const remat_random *stream, uint64_t position);
/* A number in [0, 1), uniform, with 24 random bits. */
float remat_random_uniform(const remat_random *stream, uint64_t position);
/* A number in [0, bound), uniform up to a bias of 2^-64. `bound` must not be 0. */
uint64_t remat_random_below(const remat_random *stream, uint64_t position, uint64_t bound);
/* A normal number with mean 0 and standard deviation 1. */
double remat_random_normal(const remat_random *stream, uint64_t position);

/* Four 32-bit numbers at once: numbers 4 * block to 4 * block + 3 of the stream. */
void remat_random_block(const remat_random *stream, uint64_t block, uint32_t out[4]);

/* The generator itself, to be compared with published test vectors. */
void remat_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#ifdef __cplusplus
}
#endif
#endif
