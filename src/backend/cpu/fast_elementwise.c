#include "backend/cpu/fast_math.h"

static void add_block(size_t count, const float *a, const float *b, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(a + i) + LOAD(b + i))
    FAST_EACH(count, STEP);
#undef STEP
}

static void multiply_block(size_t count, const float *a, const float *b, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(a + i) * LOAD(b + i))
    FAST_EACH(count, STEP);
#undef STEP
}

static void multiply_add_block(size_t count, const float *a, const float *b, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, fast_fma(LOAD(a + i), LOAD(b + i), LOAD(y + i)))
    FAST_EACH(count, STEP);
#undef STEP
}

static void scale_block(size_t count, float factor, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(y + i) * factor)
    FAST_EACH(count, STEP);
#undef STEP
}

void FAST(add)(const kernel_run *run, size_t count, const float *a, const float *b, float *y)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        add_block(fast_block_length(count, from), a + from, b + from, y + from);
}

void FAST(multiply)(const kernel_run *run, size_t count, const float *a, const float *b, float *y, bool accumulate)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK) {
        size_t length = fast_block_length(count, from);
        if (accumulate)
            multiply_add_block(length, a + from, b + from, y + from);
        else
            multiply_block(length, a + from, b + from, y + from);
    }
}

void FAST(accumulate)(const kernel_run *run, size_t count, const float *x, float *y)
{
    FAST(add)(run, count, y, x, y);
}

void FAST(scale)(const kernel_run *run, size_t count, float factor, float *y)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        scale_block(fast_block_length(count, from), factor, y + from);
}

void FAST(add_to_rows)(const kernel_run *run, size_t rows, size_t columns, const float *x, const float *addend,
                       float *y)
{
    size_t blocks = (columns + FAST_BLOCK - 1) / FAST_BLOCK; /* of a row */
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t block = 0; block < rows * blocks; block++) {
        size_t from = block % blocks * FAST_BLOCK, at = block / blocks * columns + from;
        add_block(fast_block_length(columns, from), x + at, addend + from, y + at);
    }
}
