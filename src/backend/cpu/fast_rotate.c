/* Turns heads by their position. A thread takes the rows of some positions, in all sequences, so that sines and cosines are
 * computed once for each position. Where positions are given, it takes some rows. */
#include "backend/cpu/fast_math.h"

enum { MOST_PAIRS = 512 }; /* whose sines and cosines are held at a time */

typedef struct turn {
    float cosines[MOST_PAIRS], sines[MOST_PAIRS];
} turn;

/* Some pairs of all heads. */
typedef struct rotate_loop {
    const op_rotate *args;
    size_t first, count;
    float frequencies[MOST_PAIRS];
} rotate_loop;

static void find_turn(const rotate_loop *loop, size_t position, turn *to)
{
    const op_rotate *p = loop->args;
    for (size_t i = 0; i < loop->count; i++) {
        const double angle = (double)((float)position * loop->frequencies[i]);
        to->cosines[i] = (float)(p->scale * cos(angle));
        to->sines[i] = (float)(p->scale * (p->backward ? -sin(angle) : sin(angle)));
    }
}

/* `a` and `b` are the two halves of a head. */
static void turn_head(const turn *by, size_t count, const float *a, const float *b, float *to_a, float *to_b)
{
#define STEP(LOAD, STORE, i, FIRST)                                                                             \
    do {                                                                                                        \
        const fast_vector c = LOAD(by->cosines + i), s = LOAD(by->sines + i), x = LOAD(a + i), y = LOAD(b + i); \
        STORE(to_a + i, fast_fms(x, c, y * s));                                                                 \
        STORE(to_b + i, fast_fma(y, c, x * s));                                                                 \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

static void add_turned_head(const turn *by, size_t count, const float *a, const float *b, float *to_a, float *to_b)
{
#define STEP(LOAD, STORE, i, FIRST)                                                                             \
    do {                                                                                                        \
        const fast_vector c = LOAD(by->cosines + i), s = LOAD(by->sines + i), x = LOAD(a + i), y = LOAD(b + i); \
        STORE(to_a + i, LOAD(to_a + i) + fast_fms(x, c, y * s));                                                \
        STORE(to_b + i, LOAD(to_b + i) + fast_fma(y, c, x * s));                                                \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

/* Row `at` of x, in values. */
static void turn_row(const rotate_loop *loop, const turn *by, size_t at)
{
    const op_rotate *p = loop->args;
    const float *x = p->x.at;
    float *y = p->y.at;
    for (size_t head = 0; head < p->heads; head++) {
        const size_t a = at + head * p->size + loop->first, b = a + p->size / 2;
        (p->accumulate ? add_turned_head : turn_head)(by, loop->count, x + a, x + b, y + a, y + b);
    }
}

static void rotate_rows(const void *args, parallel_range range)
{
    const rotate_loop *loop = args;
    const op_rotate *p = loop->args;
    const int32_t *positions = p->positions.at;
    turn by;
    for (size_t row = range.begin; row < range.end; row++) {
        find_turn(loop, (size_t)positions[row], &by);
        turn_row(loop, &by, row * p->heads * p->size);
    }
}

static void rotate_positions(const void *args, parallel_range range)
{
    const rotate_loop *loop = args;
    const op_rotate *p = loop->args;
    const size_t row = p->heads * p->size;
    turn by;
    for (size_t position = range.begin; position < range.end; position++) {
        find_turn(loop, position, &by);
        for (size_t at = position * row; at < p->rows * row; at += p->steps * row)
            turn_row(loop, &by, at);
    }
}

void FAST(rotate)(const kernel_run *run, const void *args)
{
    const op_rotate *p = args;
    rotate_loop loop = {.args = p};
    for (; loop.first < p->size / 2; loop.first += loop.count) {
        loop.count = smaller(p->size / 2 - loop.first, MOST_PAIRS);
        for (size_t i = 0; i < loop.count; i++)
            loop.frequencies[i] = rotary_frequency(&p->angles, p->size, loop.first + i);
        const int threads = fast_threads(run, p->rows * p->heads * p->size);
        if (p->positions.at)
            parallel_static(threads, p->rows, rotate_rows, &loop);
        else
            parallel_static(threads, p->steps, rotate_positions, &loop);
    }
}
