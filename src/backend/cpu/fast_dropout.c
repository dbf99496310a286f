/* The random numbers are those of the reference to the bit, and so is the result. */
#include "backend/cpu/fast_random.h"

/* x / keep where the number, its upper 24 bits as a value in [0, 1), is below keep; else 0. */
FAST_INLINE fast_vector drop(const uint32_t *numbers, float keep, fast_vector x)
{
    fast_integers bits;
    memcpy(&bits, numbers, sizeof bits);
    fast_vector uniform = __builtin_convertvector((fast_integers)((fast_words)bits >> 8), fast_vector) * 0x1p-24f;
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
        uint32_t numbers[FAST_DRAWN];
        size_t from = group * FAST_DRAWN;
        fast_draw_group(&stream, from / 4, numbers);
        dropout_group(smaller(p->count - from, FAST_DRAWN), numbers, keep, x + from, y + from, p->accumulate);
    }
}

void FAST(dropout)(const kernel_run *run, const void *args)
{
    const op_dropout *p = args;
    parallel_static(fast_threads(run, p->count), divide_up(p->count, FAST_DRAWN), dropout_groups, p);
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
        uint32_t group[FAST_DRAWN];
        size_t from = i * FAST_DRAWN;
        fast_draw_group(loop->stream, (loop->first + from) / 4, group);
        memcpy(loop->numbers + from, group, smaller(loop->count - from, FAST_DRAWN) * sizeof *group);
    }
}

void FAST(draw)(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers)
{
    const draw_loop loop = {stream, first, count, numbers};
    parallel_static(fast_threads(run, count), divide_up(count, FAST_DRAWN), draw_groups, &loop);
}
