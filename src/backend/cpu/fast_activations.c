#include "backend/cpu/fast_activations.h"

#include "backend/cpu/fast_math.h"

/* STEP as for FAST_EACH, its i counting from the first value of the matrix. */
#define EACH_ROW(size, STEP)                                                          \
    for (size_t row = 0, from = 0; row < (size)->rows; row++, from += (size)->stride) \
    FAST_EACH((size)->columns, STEP)

FAST_INLINE void forward(activation_kind kind, const fast_matrix *size, const float *x, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + from + i, fast_activate(kind, LOAD(x + from + i)))
    EACH_ROW(size, STEP);
#undef STEP
}

FAST_INLINE void backward(activation_kind kind, const fast_matrix *size, const float *v, const float *dy, float *dx)
{
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(dx + from + i, LOAD(dy + from + i) * fast_activate_derivative(kind, LOAD(v + from + i)))
    EACH_ROW(size, STEP);
#undef STEP
}

FAST_INLINE void backward_add(activation_kind kind, const fast_matrix *size, const float *v, const float *dy, float *dx)
{
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(dx + from + i,            \
          fast_fma(LOAD(dy + from + i), fast_activate_derivative(kind, LOAD(v + from + i)), LOAD(dx + from + i)))
    EACH_ROW(size, STEP);
#undef STEP
}

/* Functions of their own for every kind: with nothing around them their constants stay in registers. */
typedef struct functions {
    void (*forward)(const fast_matrix *size, const float *x, float *y);
    void (*backward)(const fast_matrix *size, const float *v, const float *dy, float *dx);
    void (*backward_add)(const fast_matrix *size, const float *v, const float *dy, float *dx);
} functions;

#define DEFINE(kind)                                                                                     \
    static void forward_##kind(const fast_matrix *size, const float *x, float *y)                        \
    {                                                                                                    \
        forward(kind, size, x, y);                                                                       \
    }                                                                                                    \
    static void backward_##kind(const fast_matrix *size, const float *v, const float *dy, float *dx)     \
    {                                                                                                    \
        backward(kind, size, v, dy, dx);                                                                 \
    }                                                                                                    \
    static void backward_add_##kind(const fast_matrix *size, const float *v, const float *dy, float *dx) \
    {                                                                                                    \
        backward_add(kind, size, v, dy, dx);                                                             \
    }
FAST_ACTIVATIONS(DEFINE)
#undef DEFINE

static const functions of_kind[] = {
#define ENTRY(kind) [kind] = {forward_##kind, backward_##kind, backward_add_##kind},
    FAST_ACTIVATIONS(ENTRY)
#undef ENTRY
};

void FAST(activate_matrix)(activation_kind kind, const fast_matrix *size, const float *x, float *y)
{
    of_kind[kind].forward(size, x, y);
}

void FAST(activate_matrix_backward)(activation_kind kind, const fast_matrix *size, const float *v, const float *dy,
                                    float *dx, bool accumulate)
{
    (accumulate ? of_kind[kind].backward_add : of_kind[kind].backward)(size, v, dy, dx);
}

static void activate_blocks(const void *args, parallel_range range)
{
    const op_activate *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK;
        fast_matrix line = {1, fast_block_length(p->count, from), 0};
        FAST(activate_matrix)(p->kind, &line, x + from, y + from);
    }
}

void FAST(activate)(const kernel_run *run, const void *args)
{
    const op_activate *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), activate_blocks, p);
}

static void activate_backward_blocks(const void *args, parallel_range range)
{
    const op_activate_backward *p = args;
    const float *dy = p->dy.at;
    float *dx = p->dx.at;
    /* Without an activation v is not read: any address will do. */
    const float *v = p->kind == ACTIVATION_NONE ? dy : activation_reads_output(p->kind) ? p->y.at : p->x.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK;
        fast_matrix line = {1, fast_block_length(p->count, from), 0};
        FAST(activate_matrix_backward)(p->kind, &line, v + from, dy + from, dx + from, p->accumulate);
    }
}

void FAST(activate_backward)(const kernel_run *run, const void *args)
{
    const op_activate_backward *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), activate_backward_blocks, p);
}
