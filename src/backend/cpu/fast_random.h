/* Philox (base/random.c) on vectors: every pair of lanes makes one block of four numbers. The numbers are the same as
 * those of remat_random_block to the bit. */
#ifndef REMAT_BACKEND_CPU_FAST_RANDOM_H
#define REMAT_BACKEND_CPU_FAST_RANDOM_H

#include "backend/cpu/fast_math.h"

typedef uint32_t fast_words __attribute__((vector_size(FAST_LANES * 4)));
typedef uint64_t fast_pairs __attribute__((vector_size(FAST_LANES * 4)));

enum {
    FAST_DRAWN_BLOCKS = FAST_LANES / 2,
    FAST_DRAWN = 4 * FAST_DRAWN_BLOCKS
}; /* drawn at a time, and their numbers */

#define FAST_LOW_WORD ((uint64_t)0xffffffff)

/* The low words of both, multiplied to 64 bits; the high words are ignored. */
FAST_INLINE fast_pairs fast_wide_product(fast_pairs a, uint32_t b)
{
#if defined(__AVX512F__)
    return (fast_pairs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(__AVX2__)
    return (fast_pairs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#else
    return (a & FAST_LOW_WORD) * b;
#endif
}

/* a0 b0 a2 b2 ... and a1 b1 a3 b3 ... */
FAST_INLINE fast_pairs fast_even_of_both(fast_pairs a, fast_pairs b)
{
#if defined(__AVX512F__)
    return (fast_pairs)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (fast_pairs)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
#else
    return (fast_pairs){a[0], b[0]};
#endif
}

FAST_INLINE fast_pairs fast_odd_of_both(fast_pairs a, fast_pairs b)
{
#if defined(__AVX512F__)
    return (fast_pairs)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (fast_pairs)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
#else
    return (fast_pairs){a[1], b[1]};
#endif
}

/* The numbers of FAST_DRAWN_BLOCKS blocks. `first` is a multiple of that, so that the high word of the counter is the same
 * for all. The even lanes take the first half of the blocks and the odd lanes the second: then the
 * numbers come out in order. */
FAST_INLINE void fast_draw_group(const remat_random *stream, uint64_t first, uint32_t numbers[FAST_DRAWN])
{
    fast_pairs c0, c1 = (first >> 32) - (fast_pairs){0};
    for (uint64_t i = 0; i < FAST_DRAWN_BLOCKS; i++)
        c0[i] = (first & FAST_LOW_WORD) + i % 2 * (FAST_DRAWN_BLOCKS / 2) + i / 2;
    fast_pairs c2 = (uint64_t)stream->high[0] - (fast_pairs){0}, c3 = (uint64_t)stream->high[1] - (fast_pairs){0};
    uint32_t key[2] = {stream->key[0], stream->key[1]};
    for (int round = 0; round < 10; round++) {
        fast_pairs a = fast_wide_product(c0, 0xD2511F53u), b = fast_wide_product(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ (uint64_t)key[0];
        c1 = b;
        c2 = (a >> 32) ^ c3 ^ (uint64_t)key[1];
        c3 = a;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    fast_pairs front = (c0 & FAST_LOW_WORD) | (c1 << 32), back = (c2 & FAST_LOW_WORD) | (c3 << 32);
    fast_pairs half[2] = {fast_even_of_both(front, back), fast_odd_of_both(front, back)};
    memcpy(numbers, half, sizeof half);
}

#endif
