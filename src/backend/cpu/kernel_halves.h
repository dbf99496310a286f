/* Operations value by value on tensors in bf16: a block of every tensor is unpacked, computed in fp32 by the kernel of the same
 * table, and packed again. So these need no room for whole tensors. */
#ifndef REMAT_BACKEND_CPU_KERNEL_HALVES_H
#define REMAT_BACKEND_CPU_KERNEL_HALVES_H

#include "backend/cpu/kernel.h"
#include "backend/extents.h"
#include "base/half_plain.h"

/* X(operation) for all of them. Their structs have a `count` behind the tensors. A tensor of bytes has a bit for each value. */
#define KERNEL_HALVES(X) \
    X(activate) X(activate_backward) X(rectify) X(rectify_backward) X(add) X(multiply) X(accumulate)
#define KERNEL_HALVES_ROWS(ROW)    \
    ROW(activate, "bb")            \
    ROW(activate_backward, "bbbb") \
    ROW(rectify, "bbu")            \
    ROW(rectify_backward, "ubb")   \
    ROW(add, "bbb")                \
    ROW(multiply, "bbb")           \
    ROW(accumulate, "bb")

enum { HALVES_BLOCK = 1024, HALVES_TENSORS = 4 };

typedef struct halves_loop {
    operation op;
    const void *args;
    kernel_function run;
    size_t count;
    operation_extent extents[OPERATION_MAX_TENSORS];
} halves_loop;

static inline void run_halves_block(const halves_loop *loop, size_t from, size_t count)
{
    float values[HALVES_TENSORS][HALVES_BLOCK];
    const tensor_ref *whole = loop->args;
    const uint32_t tensors = operation_table[loop->op].tensors;
    union {
        tensor_ref tensors[HALVES_TENSORS];
        op_activate activate;
        op_activate_backward activate_backward;
        op_rectify rectify;
        op_multiply multiply;
    } block;
    memcpy(&block, loop->args, operation_table[loop->op].bytes);
    for (uint32_t i = 0; i < tensors; i++) {
        if (!whole[i].at)
            continue;
        if (whole[i].type == REMAT_UINT8) {
            block.tensors[i].at = (uint8_t *)whole[i].at + from / 8;
            continue;
        }
        if (loop->extents[i].reads)
            bf16_unpack_runs((const uint16_t *)whole[i].at + from, values[i], count);
        block.tensors[i] = (tensor_ref){values[i], REMAT_FP32};
    }
    memcpy((char *)&block + tensors * sizeof(tensor_ref), &count, sizeof count);
    loop->run(&(kernel_run){1, NULL}, &block);
    for (uint32_t i = 0; i < tensors; i++)
        if (loop->extents[i].writes && whole[i].at)
            bf16_pack_runs(values[i], (uint16_t *)whole[i].at + from, count);
}

static inline void run_halves_blocks(const void *args, parallel_range range)
{
    const halves_loop *loop = args;
    for (size_t block = range.begin; block < range.end; block++) {
        const size_t from = block * HALVES_BLOCK, left = loop->count - from;
        run_halves_block(loop, from, left < HALVES_BLOCK ? left : HALVES_BLOCK);
    }
}

static inline void kernel_run_halves(const kernel_run *run, operation op, const void *args, kernel_function function)
{
    halves_loop loop = {.op = op, .args = args, .run = function};
    operation_extents(op, args, loop.extents);
    memcpy(&loop.count, (const char *)args + operation_table[op].tensors * sizeof(tensor_ref), sizeof loop.count);
    const int threads = loop.count < 16 * HALVES_BLOCK ? 1 : run->threads;
    parallel_static(threads, (loop.count + HALVES_BLOCK - 1) / HALVES_BLOCK, run_halves_blocks, &loop);
}

#endif
