#include "backend/cpu/fast_math.h"

void FAST(gather)(const kernel_run *run, const void *args)
{
    const op_gather *p = args;
    const int32_t *ids = p->ids.at;
    const float *table = p->table.at;
    float *y = p->y.at;
    const size_t rows = p->rows, width = p->width;
#pragma omp parallel for num_threads(fast_threads(run, rows *width)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        memcpy(y + row * width, table + (size_t)ids[row] * width, width * sizeof *y);
}

/* Every thread has a range of the columns and goes through all rows in order: no two threads write the same value, and the
 * order of the sums does not depend on where the columns are cut. */
void FAST(gather_backward)(const kernel_run *run, const void *args)
{
    const op_gather_backward *p = args;
    const int32_t *ids = p->ids.at;
    const float *dy = p->dy.at;
    float *dtable = p->dtable.at;
    const size_t rows = p->rows, width = p->width, entries = p->entries;
    const bool accumulate = p->accumulate;
    enum { LINE = 16 }; /* values of a cache line, which two threads should not share */
    size_t lines = divide_up(width, LINE);
    int shares = fast_threads(run, rows * width + entries * width);
#pragma omp parallel for num_threads(shares) schedule(static)
    for (int share = 0; share < shares; share++) {
        size_t first = fast_cut(lines, (size_t)shares, (size_t)share) * LINE;
        size_t last = fast_cut(lines, (size_t)shares, (size_t)share + 1) * LINE;
        size_t columns = (last < width ? last : width) - first;
        if (first >= width || !columns)
            continue;
        for (size_t entry = 0; !accumulate && entry < entries; entry++)
            memset(dtable + entry * width + first, 0, columns * sizeof *dtable);
        for (size_t row = 0; row < rows; row++) {
            const float *from = dy + row * width + first;
            float *to = dtable + (size_t)ids[row] * width + first;
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, LOAD(to + i) + LOAD(from + i))
            FAST_EACH(columns, STEP);
#undef STEP
        }
    }
}
