/* What every launcher of the CUDA backend gets besides the arguments of its operation. */
#ifndef REMAT_BACKEND_CUDA_CUDA_RUN_H
#define REMAT_BACKEND_CUDA_CUDA_RUN_H

#include <stddef.h>

#include <cuda_runtime_api.h>

typedef struct cuda_run {
    cudaStream_t stream;
    int multiprocessors;
    void *scratch;
    size_t scratch_bytes;
} cuda_run;

#endif
