/* relu and leaky_relu that leave a bit for each value, and their gradients from these bits. */
#include "backend/cpu/fast_math.h"

/* Values whose bits are written together: whole bytes, and whole vectors of every set. */
#define UNIT 16

/* Lane i in bit i; all bits of a lane are the same. */
FAST_INLINE unsigned bits_of(fast_integers lanes)
{
#if defined(__AVX512F__)
    return _mm512_cmplt_epi32_mask((__m512i)lanes, _mm512_setzero_si512());
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps((__m256)lanes);
#else
    unsigned bits = 0;
    for (size_t i = 0; i < FAST_LANES; i++)
        bits |= ((unsigned)lanes[i] & 1u) << i;
    return bits;
#endif
}

/* All bits of lane i are bit i. */
FAST_INLINE fast_integers lanes_of(unsigned bits)
{
    static const int32_t one_each[] = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                       1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    fast_integers each;
    memcpy(&each, one_each, sizeof each);
    return (each & (int32_t)bits) != 0;
}

/* The values of vector `v` of a unit of which `left` are there. */
FAST_INLINE size_t values_in(size_t left, size_t v)
{
    return left <= v * FAST_LANES ? 0 : smaller(left - v * FAST_LANES, FAST_LANES);
}

FAST_INLINE fast_vector load_some(const float *from, size_t count)
{
    return count == FAST_LANES ? fast_load(from) : count ? fast_load_part(from, count) : (fast_vector){0};
}

FAST_INLINE void store_some(float *to, fast_vector x, size_t count)
{
    if (count == FAST_LANES)
        fast_store(to, x);
    else if (count)
        fast_store_part(to, x, count);
}

FAST_INLINE void rectify_unit(activation_kind kind, bool writes, size_t left, const float *x, float *y,
                              uint8_t *positive)
{
    unsigned bits = 0;
    for (size_t v = 0; v < UNIT / FAST_LANES; v++) {
        const size_t at = v * FAST_LANES, count = values_in(left, v);
        const fast_vector values = load_some(x + at, count);
        bits |= bits_of(values > 0.0f) << at;
        if (writes)
            store_some(y + at, fast_activate(kind, values), count);
    }
    positive[0] = (uint8_t)bits;
    if (left > 8)
        positive[1] = (uint8_t)(bits >> 8);
}

FAST_INLINE void rectify_line(activation_kind kind, bool writes, size_t count, const float *x, float *y,
                              uint8_t *positive)
{
    size_t i = 0;
    for (; i + UNIT <= count; i += UNIT)
        rectify_unit(kind, writes, UNIT, x + i, writes ? y + i : NULL, positive + i / 8);
    if (i < count)
        rectify_unit(kind, writes, count - i, x + i, writes ? y + i : NULL, positive + i / 8);
}

static void rectify_blocks(const void *args, parallel_range range)
{
    const op_rectify *p = args;
    for (size_t block = range.begin; block < range.end; block++) {
        const size_t from = block * FAST_BLOCK, count = fast_block_length(p->count, from);
        const float *x = (const float *)p->x.at + from;
        float *y = p->y.at ? (float *)p->y.at + from : NULL;
        uint8_t *positive = (uint8_t *)p->positive.at + from / 8;
        if (!y) /* both kinds have the same bits */
            rectify_line(ACTIVATION_RELU, false, count, x, NULL, positive);
        else if (p->kind == ACTIVATION_RELU)
            rectify_line(ACTIVATION_RELU, true, count, x, y, positive);
        else
            rectify_line(ACTIVATION_LEAKY_RELU, true, count, x, y, positive);
    }
}

void FAST(rectify)(const kernel_run *run, const void *args)
{
    const op_rectify *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), rectify_blocks, p);
}

FAST_INLINE void backward_unit(fast_vector slope, bool adds, size_t left, const uint8_t *positive, const float *dy,
                               float *dx)
{
    const unsigned bits = positive[0] | (left > 8 ? (unsigned)positive[1] << 8 : 0);
    for (size_t v = 0; v < UNIT / FAST_LANES; v++) {
        const size_t at = v * FAST_LANES, count = values_in(left, v);
        const fast_vector gradient = load_some(dy + at, count),
                          factor = fast_select(lanes_of(bits >> at), fast_repeat(1.0f), slope);
        store_some(dx + at, adds ? fast_fma(gradient, factor, load_some(dx + at, count)) : gradient * factor, count);
    }
}

FAST_INLINE void backward_line(float slope, bool adds, size_t count, const uint8_t *positive, const float *dy,
                               float *dx)
{
    const fast_vector slopes = fast_repeat(slope);
    size_t i = 0;
    for (; i + UNIT <= count; i += UNIT)
        backward_unit(slopes, adds, UNIT, positive + i / 8, dy + i, dx + i);
    if (i < count)
        backward_unit(slopes, adds, count - i, positive + i / 8, dy + i, dx + i);
}

static void rectify_backward_blocks(const void *args, parallel_range range)
{
    const op_rectify_backward *p = args;
    const float slope = p->kind == ACTIVATION_RELU ? 0.0f : FAST_LEAKY;
    for (size_t block = range.begin; block < range.end; block++) {
        const size_t from = block * FAST_BLOCK, count = fast_block_length(p->count, from);
        const uint8_t *positive = (const uint8_t *)p->positive.at + from / 8;
        const float *dy = (const float *)p->dy.at + from;
        float *dx = (float *)p->dx.at + from;
        if (p->accumulate)
            backward_line(slope, true, count, positive, dy, dx);
        else
            backward_line(slope, false, count, positive, dy, dx);
    }
}

void FAST(rectify_backward)(const kernel_run *run, const void *args)
{
    const op_rectify_backward *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), rectify_backward_blocks, p);
}
