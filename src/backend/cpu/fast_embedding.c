#include "backend/cpu/fast_math.h"
#include "base/half_plain.h"

static void gather_rows(const void *args, parallel_range range)
{
    const op_gather *p = args;
    const int32_t *ids = p->ids.at;
    const size_t width = p->width;
    for (size_t row = range.begin; row < range.end; row++) {
        const void *from = tensor_from(p->table, (size_t)ids[row] * width).at;
        void *to = tensor_from(p->y, row * width).at;
        if (p->table.type == p->y.type)
            memcpy(to, from, dtype_bytes(p->y.type, width));
        else if (p->y.type == REMAT_BF16)
            bf16_pack_runs(from, to, width);
        else
            bf16_unpack_runs(from, to, width);
    }
}

void FAST(gather)(const kernel_run *run, const void *args)
{
    const op_gather *p = args;
    parallel_static(fast_threads(run, p->rows * p->width), p->rows, gather_rows, p);
}

enum { LINE = 16 }; /* values of a cache line, which two threads should not share */

/* Every thread has a range of the columns and goes through all rows in order: no two threads write the same value, and the
 * order of the sums does not depend on where the columns are cut. A pass of the loop is LINE columns. */
static void gather_backward_lines(const void *args, parallel_range range)
{
    const op_gather_backward *p = args;
    const int32_t *ids = p->ids.at;
    const float *dy = p->dy.at;
    float *dtable = p->dtable.at;
    const size_t width = p->width, first = range.begin * LINE, columns = smaller(range.end * LINE, width) - first;
    for (size_t entry = 0; !p->accumulate && entry < p->entries; entry++)
        memset(dtable + entry * width + first, 0, columns * sizeof *dtable);
    for (size_t row = 0; row < p->rows; row++) {
        const float *from = dy + row * width + first;
        float *to = dtable + (size_t)ids[row] * width + first;
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, LOAD(to + i) + LOAD(from + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

void FAST(gather_backward)(const kernel_run *run, const void *args)
{
    const op_gather_backward *p = args;
    int threads = fast_threads(run, (p->rows + p->entries) * p->width);
    parallel_static(threads, divide_up(p->width, LINE), gather_backward_lines, p);
}
