/* Activations of a matrix whose rows are `stride` values apart, on the calling thread: what `activate` and
 * `activate_backward` do for a block of values, and the GEMM for a tile. */
#ifndef REMAT_BACKEND_CPU_FAST_ACTIVATIONS_H
#define REMAT_BACKEND_CPU_FAST_ACTIVATIONS_H

#include "backend/cpu/fast.h"

typedef struct fast_matrix {
    size_t rows, columns, stride;
} fast_matrix;

/* y = activation(x); they may overlap. */
void FAST(activate_matrix)(activation_kind kind, const fast_matrix *size, const float *x, float *y);

/* dx = dy * activation'(v), or dx += that; dx may overlap dy. */
void FAST(activate_matrix_backward)(activation_kind kind, const fast_matrix *size, const float *v, const float *dy,
                                    float *dx, bool accumulate);

#endif
