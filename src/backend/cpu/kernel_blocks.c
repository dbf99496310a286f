/* Weights in fp16 and in blocks become fp32: whole parts of a matrix, and rows of a table. The same in all tables. */
#include "backend/cpu/kernel_rows.h"
#include "base/weight_blocks.h"

static void convert_blocks(const void *args, parallel_range range)
{
    const op_convert *p = args;
    const size_t first = range.begin * WEIGHT_BLOCK, count = (range.end - range.begin) * WEIGHT_BLOCK;
    weight_blocks_unpack(p->x.type, tensor_from(p->x, first).at, (float *)p->y.at + first, count);
}

void kernel_convert_blocks(const kernel_run *run, const void *args)
{
    const op_convert *p = args;
    parallel_static(p->count < 65536 ? 1 : run->threads, p->count / WEIGHT_BLOCK, convert_blocks, p);
}

static void gather_rows(const void *args, parallel_range range)
{
    const op_gather *p = args;
    const int32_t *ids = p->ids.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const void *from = tensor_from(p->table, (uint64_t)ids[row] * p->width).at;
        weight_blocks_unpack(p->table.type, from, (float *)p->y.at + row * p->width, p->width);
    }
}

void kernel_gather_blocks(const kernel_run *run, const void *args)
{
    const op_gather *p = args;
    parallel_static(run->threads, p->rows, gather_rows, p);
}
