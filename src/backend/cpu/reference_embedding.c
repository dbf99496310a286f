#include "backend/cpu/reference.h"

#include "base/half_plain.h"

#include <string.h>

static void gather_rows(const void *args, parallel_range range)
{
    const op_gather *p = args;
    const int32_t *ids = p->ids.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const void *from = tensor_from(p->table, (size_t)ids[row] * p->width).at;
        void *to = tensor_from(p->y, row * p->width).at;
        if (p->table.type == p->y.type)
            memcpy(to, from, dtype_bytes(p->y.type, p->width));
        else if (p->y.type == REMAT_BF16)
            bf16_pack_runs(from, to, p->width);
        else
            bf16_unpack_runs(from, to, p->width);
    }
}

void REFERENCE(gather)(const kernel_run *run, const void *args)
{
    const op_gather *p = args;
    parallel_static(run->threads, p->rows, gather_rows, p);
}

void REFERENCE(gather_backward)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_gather_backward *p = args;
    const int32_t *ids = p->ids.at;
    const real *dy = p->dy.at;
    real *dtable = p->dtable.at;
    for (size_t i = 0; !p->accumulate && i < p->entries * p->width; i++)
        dtable[i] = 0;
    for (size_t row = 0; row < p->rows; row++)
        for (size_t i = 0; i < p->width; i++)
            dtable[(size_t)ids[row] * p->width + i] += dy[row * p->width + i];
}
