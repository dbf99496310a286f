/* Max pooling: the planes of the channels are spread over threads. Choices are found as positions; where they are kept in fewer
 * bits, a row of them is in the scratch memory before it is packed. */
#include "backend/cpu/chosen_taps.h"
#include "backend/cpu/fast_pool.h"

FAST_INLINE void store_places(int32_t *to, fast_integers x, size_t count)
{
    if (count >= FAST_LANES) {
        memcpy(to, &x, sizeof x);
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << count) - 1), (__m512i)x);
#elif defined(__AVX2__)
    _mm256_maskstore_epi32(to, (__m256i)fast_lanes_below(count), (__m256i)x);
#else
    for (size_t i = 0; i < count; i++)
        to[i] = x[i];
#endif
}

FAST_INLINE fast_integers lane_numbers(void)
{
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    fast_integers lanes;
    memcpy(&lanes, numbers, sizeof lanes);
    return lanes;
}

/* Whether `value`, which comes later, replaces `best`: it is larger, or the first NaN. */
#define TAKES(value, best) (~((value) <= (best)) & ((best) == (best)))

FAST_INLINE void max_vector(const float *x, size_t width, size_t rows, size_t columns, size_t stride, size_t count,
                            size_t first, float *y, int32_t *chosen)
{
    fast_vector best = load_apart(x, stride, count);
    fast_integers where = {0};
    for (size_t ky = 0; ky < rows; ky++)
        for (size_t kx = ky == 0; kx < columns; kx++) {
            fast_vector value = load_apart(x + ky * width + kx, stride, count);
            fast_integers take = TAKES(value, best);
            best = fast_select(take, value, best);
            where = (take & (int32_t)(ky * width + kx)) | (~take & where);
        }
    if (y)
        store_some(y, best, count);
    store_places(chosen, where + ((int32_t)first + lane_numbers() * (int32_t)stride), count);
}

FAST_INLINE void max_shape(const float *x, size_t at, size_t width, size_t rows, size_t columns, size_t stride,
                           size_t outputs, float *y, int32_t *chosen)
{
#define STEP(i, count) \
    max_vector(x + at + i * stride, width, rows, columns, stride, count, at + i * stride, y ? y + i : y, chosen + i)
    EACH_VECTOR(outputs, STEP);
#undef STEP
}

FAST_NOINLINE void max_strip(const strip *s, cut high, const float *x, float *y, int32_t *chosen)
{
    size_t at = high.at * s->width + s->at;
    y = y ? y + s->begin : y;
    chosen += s->begin;
#define DO(rows, columns, stride) max_shape(x, at, s->width, rows, columns, stride, s->end - s->begin, y, chosen)
    BY_SHAPE(s, high.count, DO);
#undef DO
}

static void max_one(const operation_window *w, cut high, size_t o, const float *x, float *y, int32_t *chosen)
{
    cut wide = cut_wide(w, o);
    size_t first = high.at * w->in_w + wide.at, where = first;
    bool any = high.count && wide.count;
    float best = any ? x[first] : 0;
    for (size_t ky = 0; ky < high.count; ky++)
        for (size_t kx = 0; kx < wide.count; kx++) {
            float value = x[first + ky * w->in_w + kx];
            bool take = value > best || (value != value && best == best);
            best = take ? value : best;
            where = take ? first + ky * w->in_w + kx : where;
        }
    if (y)
        y[o] = best;
    chosen[o] = any ? (int32_t)where : -1;
}

static void max_row(const operation_window *w, const strip *inside, size_t row, const float *x, float *y,
                    int32_t *chosen)
{
    cut high = cut_high(w, row);
    size_t begin = high.count ? inside->begin : 0, end = high.count ? inside->end : 0;
    for (size_t o = 0; o < begin; o++)
        max_one(w, high, o, x, y, chosen);
    if (begin < end)
        max_strip(inside, high, x, y, chosen);
    for (size_t o = end; o < w->out_w; o++)
        max_one(w, high, o, x, y, chosen);
}

/* The place of the largest value of a whole plane: every lane finds its own, then the first of the largest is taken. */
static size_t whole_max(const float *x, size_t count)
{
    size_t place = 0, i = 1;
    if (count >= FAST_LANES) {
        fast_vector best = fast_load(x);
        fast_integers where = lane_numbers();
        for (i = FAST_LANES; i + FAST_LANES <= count; i += FAST_LANES) {
            fast_vector value = fast_load(x + i);
            fast_integers take = TAKES(value, best);
            best = fast_select(take, value, best);
            where = (take & ((int32_t)i + lane_numbers())) | (~take & where);
        }
        place = (size_t)where[0];
        for (size_t lane = 1; lane < FAST_LANES; lane++) {
            float value = best[lane], most = x[place];
            bool equal = value == most || (value != value && most != most);
            if (equal ? (size_t)where[lane] < place : value > most || value != value)
                place = (size_t)where[lane];
        }
    }
    for (; i < count; i++)
        if (x[i] > x[place] || (x[i] != x[i] && x[place] == x[place]))
            place = i;
    return place;
}

_Static_assert(65536 * sizeof(int32_t) <= FAST_SCRATCH_BYTES, "a row of outputs that is packed fits");

typedef struct max_loop {
    const kernel_run *run;
    const op_pool_max *of;
} max_loop;

static void max_planes(const void *args, parallel_range range)
{
    const max_loop *loop = args;
    const op_pool_max *p = loop->of;
    const operation_window *w = &p->window;
    const float *x = p->x.at;
    float *y = p->y.at;
    int32_t *chosen = p->chosen.at;
    uint8_t *packed = p->chosen.type == REMAT_UINT8 ? p->chosen.at : NULL;
    int32_t *positions = packed ? (int32_t *)(void *)fast_scratch(loop->run, range.thread) : NULL;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, row_bytes = packed ? operation_chosen_row(w) : 0;
    bool whole = takes_whole_plane(w);
    strip inside = strip_of(w);
    for (size_t plane = range.begin; plane < range.end; plane++) {
        const float *from = x + plane * in;
        if (whole) {
            size_t place = whole_max(from, in);
            if (packed)
                chosen_pack(w, 0, &(int32_t){(int32_t)place}, packed + plane * row_bytes);
            else
                chosen[plane] = (int32_t)place;
            if (y)
                y[plane] = from[place];
            continue;
        }
        for (size_t row = 0; row < w->out_h; row++) {
            size_t at = plane * out + row * w->out_w;
            max_row(w, &inside, row, from, y ? y + at : y, packed ? positions : chosen + at);
            if (packed)
                chosen_pack(w, row, positions, packed + (plane * w->out_h + row) * row_bytes);
        }
    }
}

void FAST(pool_max)(const kernel_run *run, const void *args)
{
    const op_pool_max *p = args;
    pool_each_plane(run, &p->window, max_planes, &(max_loop){run, p});
}

static void max_planes_back_packed(const void *args, parallel_range range)
{
    const op_pool_max_backward *p = args;
    const operation_window *w = &p->window;
    const size_t in = w->in_h * w->in_w, row_bytes = operation_chosen_row(w);
    chosen_places places;
    chosen_find_places(w, places);
    for (size_t plane = range.begin; plane < range.end; plane++) {
        float *to = (float *)p->dx.at + plane * in;
        if (!p->accumulate)
            memset(to, 0, in * sizeof *to);
        for (size_t row = 0; row < w->out_h; row++) {
            const uint8_t *packed = (const uint8_t *)p->chosen.at + (plane * w->out_h + row) * row_bytes;
            const float *from = (const float *)p->dy.at + (plane * w->out_h + row) * w->out_w;
            for (size_t o = 0; o < w->out_w; o++)
                to[chosen_position(w, places, packed, row, o)] += from[o];
        }
    }
}

static void max_planes_back(const void *args, parallel_range range)
{
    const op_pool_max_backward *p = args;
    const operation_window *w = &p->window;
    const int32_t *chosen = p->chosen.at;
    const float *dy = p->dy.at;
    float *dx = p->dx.at;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w;
    for (size_t plane = range.begin; plane < range.end; plane++) {
        const int32_t *where = chosen + plane * out;
        const float *from = dy + plane * out;
        float *to = dx + plane * in;
        if (!p->accumulate)
            memset(to, 0, in * sizeof *to);
        for (size_t o = 0; o < out; o++)
            if (where[o] >= 0)
                to[where[o]] += from[o];
    }
}

void FAST(pool_max_backward)(const kernel_run *run, const void *args)
{
    const op_pool_max_backward *p = args;
    pool_each_plane(run, &p->window, p->chosen.type == REMAT_UINT8 ? max_planes_back_packed : max_planes_back, p);
}
