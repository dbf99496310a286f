/* The kernels of CUDA by operation and element types. */
#ifndef REMAT_BACKEND_CUDA_CUDA_TABLE_H
#define REMAT_BACKEND_CUDA_CUDA_TABLE_H

#include "backend/cuda/cuda_run.h"

typedef struct cuda_row {
    operation op;
    const char *types;
    cuda_launcher launch;
    cuda_many_launcher launch_many; /* NULL: one by one */
} cuda_row;

/* NULL where there is none. */
const cuda_row *cuda_table_find(operation op, const char *types);

/* 0 for operations that need no workspace. `fused` is NULL where cuDNN is not there. */
uint64_t cuda_table_workspace(cudnn_attention *fused, operation op, const void *args);

#endif
