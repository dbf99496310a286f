/* Philox (base/random.c) on vectors: every pair of lanes makes one block of four numbers. The numbers are the same as
 * those of remat_random_block to the bit, and so is the result the same as the reference's. */
#include "backend/cpu/fast_math.h"

typedef uint32_t words __attribute__((vector_size(FAST_LANES * 4)));
typedef uint64_t pairs __attribute__((vector_size(FAST_LANES * 4)));

enum { BLOCKS = FAST_LANES / 2, GROUP = 4 * BLOCKS }; /* blocks drawn at a time, and their numbers */

static const uint64_t LOW_WORD = 0xffffffff;

/* The low words of both, multiplied to 64 bits; the high words are ignored. */
FAST_INLINE pairs wide_product(pairs a, uint32_t b)
{
#if defined(__AVX512F__)
    return (pairs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(__AVX2__)
    return (pairs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#else
    return (a & LOW_WORD) * b;
#endif
}

/* a0 b0 a2 b2 ... and a1 b1 a3 b3 ... */
FAST_INLINE pairs even_of_both(pairs a, pairs b)
{
#if defined(__AVX512F__)
    return (pairs)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (pairs)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
#else
    return (pairs){a[0], b[0]};
#endif
}

FAST_INLINE pairs odd_of_both(pairs a, pairs b)
{
#if defined(__AVX512F__)
    return (pairs)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (pairs)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
#else
    return (pairs){a[1], b[1]};
#endif
}

/* The numbers of the blocks first .. first + BLOCKS - 1; first is a multiple of BLOCKS, so that the high word of the
 * counter is the same for all. The even lanes take the first half of the blocks and the odd lanes the second: then the
 * numbers come out in order. */
FAST_INLINE void draw_group(const remat_random *stream, uint64_t first, uint32_t numbers[GROUP])
{
    pairs c0, c1 = (first >> 32) - (pairs){0};
    for (uint64_t i = 0; i < BLOCKS; i++)
        c0[i] = (first & LOW_WORD) + i % 2 * (BLOCKS / 2) + i / 2;
    pairs c2 = (uint64_t)stream->high[0] - (pairs){0}, c3 = (uint64_t)stream->high[1] - (pairs){0};
    uint32_t key[2] = {stream->key[0], stream->key[1]};
    for (int round = 0; round < 10; round++) {
        pairs a = wide_product(c0, 0xD2511F53u), b = wide_product(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ (uint64_t)key[0];
        c1 = b;
        c2 = (a >> 32) ^ c3 ^ (uint64_t)key[1];
        c3 = a;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    pairs front = (c0 & LOW_WORD) | (c1 << 32), back = (c2 & LOW_WORD) | (c3 << 32);
    pairs half[2] = {even_of_both(front, back), odd_of_both(front, back)};
    memcpy(numbers, half, sizeof half);
}

/* x / keep where the number, its upper 24 bits as a value in [0, 1), is below keep; else 0. */
FAST_INLINE fast_vector drop(const uint32_t *numbers, float keep, fast_vector x)
{
    fast_integers bits;
    memcpy(&bits, numbers, sizeof bits);
    fast_vector uniform = __builtin_convertvector((fast_integers)((words)bits >> 8), fast_vector) * 0x1p-24f;
    return (fast_vector)((uniform < keep) & (fast_integers)(x / keep));
}

static void dropout_group(size_t count, const uint32_t *numbers, float keep, const float *x, float *y, bool accumulate)
{
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(y + i) + drop(numbers + i, keep, LOAD(x + i)))
        FAST_EACH(count, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, drop(numbers + i, keep, LOAD(x + i)))
        FAST_EACH(count, STEP);
#undef STEP
    }
}

static void dropout_groups(const void *args, parallel_range range)
{
    const op_dropout *p = args;
    const step_block *block = p->step.at;
    const remat_random stream = remat_random_stream(block->seed, p->layer, block->step);
    const float *x = p->x.at, keep = (float)p->keep;
    float *y = p->y.at;
    for (size_t group = range.begin; group < range.end; group++) {
        uint32_t numbers[GROUP];
        size_t from = group * GROUP;
        draw_group(&stream, from / 4, numbers);
        dropout_group(smaller(p->count - from, GROUP), numbers, keep, x + from, y + from, p->accumulate);
    }
}

void FAST(dropout)(const kernel_run *run, const void *args)
{
    const op_dropout *p = args;
    parallel_static(fast_threads(run, p->count), divide_up(p->count, GROUP), dropout_groups, p);
}

typedef struct draw_loop {
    const remat_random *stream;
    uint64_t first;
    size_t count;
    uint32_t *numbers;
} draw_loop;

static void draw_groups(const void *args, parallel_range range)
{
    const draw_loop *loop = args;
    for (size_t i = range.begin; i < range.end; i++) {
        uint32_t group[GROUP];
        size_t from = i * GROUP;
        draw_group(loop->stream, (loop->first + from) / 4, group);
        memcpy(loop->numbers + from, group, smaller(loop->count - from, GROUP) * sizeof *group);
    }
}

void FAST(draw)(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers)
{
    const draw_loop loop = {stream, first, count, numbers};
    parallel_static(fast_threads(run, count), divide_up(count, GROUP), draw_groups, &loop);
}
