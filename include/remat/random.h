/* Remat: random numbers that can be drawn again.
 *
 * The generator is counter-based (Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, 2011): number k of a stream is a
 * pure function of the stream's key and k. A layer that is recomputed asks for the same numbers and gets them,
 * in any order and from any thread, with nothing to save. */
#ifndef REMAT_RANDOM_H
#define REMAT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stream. Make it with remat_random_stream; copy it freely. */
typedef struct remat_random {
    uint32_t key[2];
    uint32_t high[2];
} remat_random;

/* The stream for a seed, a layer and a step of training. Different triples give independent streams. */
remat_random remat_random_stream(uint64_t seed, uint32_t layer, uint32_t step);

/* The four 32-bit numbers 4*block .. 4*block+3 of the stream. */
void remat_random_block(const remat_random *stream, uint64_t block, uint32_t out[4]);

/* Number `position` of the stream: 64 random bits; uniform in [0, 1) with 24 bits; uniform in [0, bound), unbiased
 * to 2^-64, bound > 0; normal with mean 0 and deviation 1. */
uint64_t remat_random_bits(const remat_random *stream, uint64_t position);
float remat_random_uniform(const remat_random *stream, uint64_t position);
uint64_t remat_random_below(const remat_random *stream, uint64_t position, uint64_t bound);
double remat_random_normal(const remat_random *stream, uint64_t position);

/* The bare function, for tests against published vectors. */
void remat_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#ifdef __cplusplus
}
#endif
#endif
