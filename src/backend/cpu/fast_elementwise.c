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

static void fill_block(size_t count, float value, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, fast_repeat(value))
    FAST_EACH(count, STEP);
#undef STEP
}

static void add(const kernel_run *run, size_t count, const float *a, const float *b, float *y)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        add_block(fast_block_length(count, from), a + from, b + from, y + from);
}

void FAST(add)(const kernel_run *run, const void *args)
{
    const op_add *p = args;
    add(run, p->count, p->a.at, p->b.at, p->y.at);
}

void FAST(accumulate)(const kernel_run *run, const void *args)
{
    const op_accumulate *p = args;
    add(run, p->count, p->y.at, p->x.at, p->y.at);
}

void FAST(multiply)(const kernel_run *run, const void *args)
{
    const op_multiply *p = args;
    const float *a = p->a.at, *b = p->b.at;
    float *y = p->y.at;
    const size_t count = p->count;
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK) {
        size_t length = fast_block_length(count, from);
        if (p->accumulate)
            multiply_add_block(length, a + from, b + from, y + from);
        else
            multiply_block(length, a + from, b + from, y + from);
    }
}

void FAST(scale)(const kernel_run *run, const void *args)
{
    const op_scale *p = args;
    const float factor = (float)p->factor;
    float *y = p->y.at;
    const size_t count = p->count;
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        scale_block(fast_block_length(count, from), factor, y + from);
}

/* Each thread copies or fills one part: the library's memcpy and memset do large parts without reading what they write. */

void FAST(copy)(const kernel_run *run, const void *args)
{
    const op_copy *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const int parts = fast_threads(run, p->count);
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int part = 0; part < parts; part++) {
        size_t first = fast_cut(p->count, (size_t)parts, (size_t)part);
        size_t last = fast_cut(p->count, (size_t)parts, (size_t)part + 1);
        if (first < last)
            memcpy(y + first, x + first, (last - first) * sizeof *y);
    }
}

void FAST(fill)(const kernel_run *run, const void *args)
{
    const op_fill *p = args;
    const float value = (float)p->value;
    const bool zero = value == 0 && !signbit(value);
    float *y = p->y.at;
    const int parts = fast_threads(run, p->count);
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int part = 0; part < parts; part++) {
        size_t first = fast_cut(p->count, (size_t)parts, (size_t)part);
        size_t last = fast_cut(p->count, (size_t)parts, (size_t)part + 1);
        if (zero && first < last)
            memset(y + first, 0, (last - first) * sizeof *y);
        else
            fill_block(last - first, value, y + first);
    }
}

void FAST(add_to_rows)(const kernel_run *run, const void *args)
{
    const op_add_to_rows *p = args;
    const float *x = p->x.at, *addend = p->addend.at;
    float *y = p->y.at;
    const size_t rows = p->rows, columns = p->columns, blocks = divide_up(columns, FAST_BLOCK); /* of a row */
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t block = 0; block < rows * blocks; block++) {
        size_t from = block % blocks * FAST_BLOCK, at = block / blocks * columns + from;
        add_block(fast_block_length(columns, from), x + at, addend + from, y + at);
    }
}

void FAST(copy_rows)(const kernel_run *run, const void *args)
{
    const op_copy_rows *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const size_t rows = p->rows, columns = p->columns;
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const float *from = x + row * p->x_row;
        float *to = y + row * p->y_row;
        if (p->accumulate)
            add_block(columns, to, from, to);
        else if (columns)
            memcpy(to, from, columns * sizeof *to);
    }
}
