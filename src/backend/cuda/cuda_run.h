/* What the launchers of CUDA kernels get. A launcher puts the kernels of one operation into a stream and returns; it must be
 * callable while the stream is captured into a graph. */
#ifndef REMAT_BACKEND_CUDA_CUDA_RUN_H
#define REMAT_BACKEND_CUDA_CUDA_RUN_H

/* Before operation.h, because C++ must not see these between the braces below. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/operation.h"

typedef struct cuda_products cuda_products; /* cuda_products.h */
typedef struct cudnn_attention cudnn_attention;

typedef struct cuda_run {
    cudaStream_t stream;
    int multiprocessors;
    void *scratch; /* of the queue. A launcher may use it; the next one overwrites it */
    size_t scratch_bytes;
    cuda_products *products;
    cudnn_attention *attention; /* NULL: cuDNN is not there */
} cuda_run;

/* `args` is the struct of the operation. */
typedef cudaError_t (*cuda_launcher)(const cuda_run *run, const void *args);

/* One launcher for every operation. Custom has none, because it calls functions of the host; attention has several. */
/* clang-format off */
#define CUDA_OPERATIONS(X)                                                                                   \
    X(gemm) X(activate) X(activate_backward) X(rectify) X(rectify_backward) X(add) X(multiply) X(scale) X(accumulate) X(copy) X(convert)    \
    X(fill) X(dropout) X(softmax) X(softmax_backward) X(add_to_rows) X(copy_rows) X(column_sums)             \
    X(add_to_channels) X(channel_sums) X(gather) X(gather_backward) X(normalize) X(normalize_backward)       \
    X(batch_statistics) X(batch_scales) X(batch_normalize) X(batch_normalize_backward) X(group_normalize)    \
    X(group_normalize_backward) X(attention_cached) X(put_rows) X(rotate) X(lstm_cell) X(lstm_cell_backward) \
    X(gru_cell) X(gru_cell_backward) X(convolve) X(convolve_backward_weight) X(convolve_backward_input)      \
    X(pool_max) X(pool_max_backward) X(pool_average) X(pool_average_backward) X(cross_entropy)               \
    X(squared_error) X(pointwise_loss) X(finish_loss) X(count_correct) X(add_squares) X(block_squares)       \
    X(check_finite) X(clip) X(sgd) X(adam) X(lion) X(adafactor)
/* clang-format on */
#define X(name) cudaError_t cuda_##name(const cuda_run *run, const op_##name *args);
CUDA_OPERATIONS(X)
X(attention)
X(attention_backward)
#undef X

/* The same for many calls that follow each other, `calls` of them, in fewer launches. */
typedef cudaError_t (*cuda_many_launcher)(const cuda_run *run, const void *const *args, size_t calls);
cudaError_t cuda_add_many_squares(const cuda_run *run, const void *const *args, size_t calls);
cudaError_t cuda_many_sgd(const cuda_run *run, const void *const *args, size_t calls);
cudaError_t cuda_many_adam(const cuda_run *run, const void *const *args, size_t calls);
cudaError_t cuda_many_lion(const cuda_run *run, const void *const *args, size_t calls);

/* A sum and the normalisation of it, in one launch with the same bits. They can be if the result of the normalisation does not lie where
 * an operand of the sum is still to be read. */
bool cuda_can_add_and_normalize(const op_add *sum, const op_normalize *normalize);
cudaError_t cuda_add_and_normalize(const cuda_run *run, const op_add *sum, const op_normalize *normalize);

/* Bytes of workspace; sizes and types count, addresses do not. */
uint64_t cuda_normalize_backward_workspace(const op_normalize_backward *args);
uint64_t cuda_group_normalize_backward_workspace(const op_group_normalize_backward *args);
uint64_t cuda_attention_backward_workspace(const op_attention_backward *args);
uint64_t cuda_convolve_workspace(const operation_window *window, remat_dtype type);

#ifdef __cplusplus
}
#endif
#endif
