#include "backend/cpu/fast_math.h"
#include "base/half_plain.h"

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

static void add_blocks(const void *args, parallel_range range)
{
    const op_add *p = args;
    const float *a = p->a.at, *b = p->b.at;
    float *y = p->y.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK;
        add_block(fast_block_length(p->count, from), a + from, b + from, y + from);
    }
}

void FAST(add)(const kernel_run *run, const void *args)
{
    const op_add *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), add_blocks, p);
}

void FAST(accumulate)(const kernel_run *run, const void *args)
{
    const op_accumulate *p = args;
    const op_add add = {.a = p->y, .b = p->x, .y = p->y, .count = p->count};
    FAST(add)(run, &add);
}

static void multiply_blocks(const void *args, parallel_range range)
{
    const op_multiply *p = args;
    const float *a = p->a.at, *b = p->b.at;
    float *y = p->y.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK, length = fast_block_length(p->count, from);
        if (p->accumulate)
            multiply_add_block(length, a + from, b + from, y + from);
        else
            multiply_block(length, a + from, b + from, y + from);
    }
}

void FAST(multiply)(const kernel_run *run, const void *args)
{
    const op_multiply *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), multiply_blocks, p);
}

static void scale_blocks(const void *args, parallel_range range)
{
    const op_scale *p = args;
    float *y = p->y.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK;
        scale_block(fast_block_length(p->count, from), (float)p->factor, y + from);
    }
}

void FAST(scale)(const kernel_run *run, const void *args)
{
    const op_scale *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), scale_blocks, p);
}

/* Each thread copies or fills one range of values: the library's memcpy and memset do large ones without reading what they
 * write. */

static void copy_range(const void *args, parallel_range range)
{
    const op_copy *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    memcpy(y + range.begin, x + range.begin, (range.end - range.begin) * sizeof *y);
}

void FAST(copy)(const kernel_run *run, const void *args)
{
    const op_copy *p = args;
    parallel_static(fast_threads(run, p->count), p->count, copy_range, p);
}

static void fill_range(const void *args, parallel_range range)
{
    const op_fill *p = args;
    const float value = (float)p->value;
    float *y = p->y.at;
    if (value == 0 && !signbit(value))
        memset(y + range.begin, 0, (range.end - range.begin) * sizeof *y);
    else
        fill_block(range.end - range.begin, value, y + range.begin);
}

void FAST(fill)(const kernel_run *run, const void *args)
{
    const op_fill *p = args;
    parallel_static(fast_threads(run, p->count), p->count, fill_range, p);
}

/* A pass of the loop is a block of a row. */
static void add_to_rows_blocks(const void *args, parallel_range range)
{
    const op_add_to_rows *p = args;
    const float *x = p->x.at, *addend = p->addend.at;
    float *y = p->y.at;
    const size_t columns = p->columns, blocks = fast_blocks(columns);
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block % blocks * FAST_BLOCK, at = block / blocks * columns + from;
        add_block(fast_block_length(columns, from), x + at, addend + from, y + at);
    }
}

void FAST(add_to_rows)(const kernel_run *run, const void *args)
{
    const op_add_to_rows *p = args;
    parallel_static(fast_threads(run, p->rows * p->columns), p->rows * fast_blocks(p->columns), add_to_rows_blocks, p);
}

static void copy_some_rows(const void *args, parallel_range range)
{
    const op_copy_rows *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++) {
        const float *from = x + row * p->x_row;
        float *to = y + row * p->y_row;
        if (p->accumulate)
            add_block(columns, to, from, to);
        else if (columns)
            memcpy(to, from, columns * sizeof *to);
    }
}

void FAST(copy_rows)(const kernel_run *run, const void *args)
{
    const op_copy_rows *p = args;
    parallel_static(fast_threads(run, p->rows * p->columns), p->rows, copy_some_rows, p);
}

static void convert_blocks(const void *args, parallel_range range)
{
    const op_convert *p = args;
    for (size_t block = range.begin; block < range.end; block++) {
        const size_t from = block * FAST_BLOCK, count = fast_block_length(p->count, from);
        if (p->x.type == p->y.type)
            memcpy((float *)p->y.at + from, (const float *)p->x.at + from, count * sizeof(float));
        else if (p->x.type == REMAT_BF16)
            bf16_unpack_runs((const uint16_t *)p->x.at + from, (float *)p->y.at + from, count);
        else
            bf16_pack_runs((const float *)p->x.at + from, (uint16_t *)p->y.at + from, count);
    }
}

void FAST(convert)(const kernel_run *run, const void *args)
{
    const op_convert *p = args;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), convert_blocks, p);
}
