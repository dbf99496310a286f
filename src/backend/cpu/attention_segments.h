/* Attention to rows that hold several segments: each is a sequence of its own. So a sample that shares a row with others gives the
 * bits that it gives alone, and no score between two samples is computed. */
#ifndef REMAT_BACKEND_CPU_ATTENTION_SEGMENTS_H
#define REMAT_BACKEND_CPU_ATTENTION_SEGMENTS_H

#include "backend/cpu/kernel.h"

/* The rows from `first` to the next segment. Whatever the positions are, segments cover every row once. */
static inline size_t segment_rows(const int32_t *positions, size_t first, size_t steps)
{
    size_t end = first + 1;
    while (end < steps && positions[end] != 0)
        end++;
    return end - first;
}

static inline void attend_segments(const kernel_run *run, const op_attention *whole, kernel_function attend)
{
    const int32_t *positions = whole->positions.at;
    op_attention part = *whole;
    part.batch = 1;
    part.positions = TENSOR_NONE;
    for (size_t row = 0; row < whole->batch * whole->steps; row += part.steps) {
        const size_t sequence = row / whole->steps * whole->steps;
        part.steps = part.keys = segment_rows(positions + sequence, row - sequence, whole->steps);
        part.q = tensor_from(whole->q, row * whole->row);
        part.k = tensor_from(whole->k, row * whole->key_row);
        part.v = tensor_from(whole->v, row * whole->key_row);
        part.out = tensor_from(whole->out, row * whole->out_row);
        part.sums = tensor_from(whole->sums, row * whole->heads);
        attend(run, &part);
    }
}

static inline void attend_segments_backward(const kernel_run *run, const op_attention_backward *whole,
                                            kernel_function attend)
{
    const int32_t *positions = whole->positions.at;
    op_attention_backward part = *whole;
    part.batch = 1;
    part.positions = TENSOR_NONE;
    for (size_t row = 0; row < whole->batch * whole->steps; row += part.steps) {
        const size_t sequence = row / whole->steps * whole->steps;
        part.steps = part.keys = segment_rows(positions + sequence, row - sequence, whole->steps);
        part.q = tensor_from(whole->q, row * whole->row);
        part.dq = tensor_from(whole->dq, row * whole->row);
        part.k = tensor_from(whole->k, row * whole->key_row);
        part.dk = tensor_from(whole->dk, row * whole->key_row);
        part.v = tensor_from(whole->v, row * whole->key_row);
        part.dv = tensor_from(whole->dv, row * whole->key_row);
        part.out = tensor_from(whole->out, row * whole->out_row);
        part.dout = tensor_from(whole->dout, row * whole->out_row);
        part.sums = tensor_from(whole->sums, row * whole->heads);
        attend(run, &part);
    }
}

#endif
