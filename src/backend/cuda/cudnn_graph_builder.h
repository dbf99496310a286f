/* Builds graphs of cuDNN's operations and the plans that run them.
 *
 * Descriptors belong to the builder. After the first failure every call does nothing and returns NULL; `reason` then says
 * which call failed and why. So a graph is written down without a check after each line. */
#ifndef REMAT_BACKEND_CUDA_CUDNN_GRAPH_BUILDER_H
#define REMAT_BACKEND_CUDA_CUDNN_GRAPH_BUILDER_H

#include "backend/cuda/cudnn_library.h"

#ifdef REMAT_HAS_CUDNN

#include <remat/context.h>

#define CUDNN_MAX_OPERATIONS 32

typedef cudnnBackendDescriptor_t cudnn_object;

typedef struct cudnn_builder {
    const cudnn_library *cudnn;
    remat_context *context;
    cudnn_object *made; /* everything that was made, in order */
    size_t made_count, made_capacity;
    cudnn_object operations[CUDNN_MAX_OPERATIONS];
    size_t operation_count;
    int64_t next_uid; /* of tensors inside the graph */
    bool failed, out_of_memory;
    char reason[400];
} cudnn_builder;

typedef struct cudnn_shape {
    int64_t sizes[4], strides[4];
} cudnn_shape;

/* Tensors from 1 up to here have addresses, given when the plan runs. */
#define CUDNN_FIRST_INNER_UID 100

void cudnn_builder_start(cudnn_builder *builder, const cudnn_library *cudnn, remat_context *context);
void cudnn_builder_end(cudnn_builder *builder); /* releases what was made */

/* A tensor with an address, a number that the host passes by value, and a tensor inside the graph that is never stored. */
cudnn_object cudnn_tensor(cudnn_builder *builder, int64_t uid, cudnnDataType_t type, cudnn_shape shape);
cudnn_object cudnn_number(cudnn_builder *builder, int64_t uid);
cudnn_object cudnn_inner(cudnn_builder *builder, cudnnDataType_t type, cudnn_shape shape);

/* The operations. Those that return a tensor make it: an inner one in fp32, like `shape`. */
typedef struct cudnn_pointwise_args {
    cudnnPointwiseMode_t mode;
    cudnn_object x, b, t, y;
    cudnnDataType_t type; /* of the computation */
    int64_t axis;         /* of CUDNN_POINTWISE_GEN_INDEX */
} cudnn_pointwise_args;
void cudnn_pointwise(cudnn_builder *builder, const cudnn_pointwise_args *args);
cudnn_object cudnn_unary(cudnn_builder *builder, cudnnPointwiseMode_t mode, cudnn_object x, cudnn_shape shape);
cudnn_object cudnn_binary(cudnn_builder *builder, cudnnPointwiseMode_t mode, cudnn_object x, cudnn_object b,
                          cudnn_shape shape);
void cudnn_matmul(cudnn_builder *builder, cudnn_object a, cudnn_object b, cudnn_object c);
void cudnn_reduce(cudnn_builder *builder, cudnnReduceTensorOp_t mode, cudnn_object x, cudnn_object y);
void cudnn_reshape(cudnn_builder *builder, cudnn_object x, cudnn_object y);

/* Makes the plan of the graph so far: the first one of cuDNN's own ranking that it can build and that always adds in the same
 * order. */
cudnn_object cudnn_plan(cudnn_builder *builder, cudnnHandle_t handle, int64_t *workspace_bytes);

/* Runs a plan on the handle's stream. Returns false, with the reason, if that fails. */
typedef struct cudnn_binding {
    int64_t uid;
    void *at;
} cudnn_binding;
bool cudnn_run(cudnn_builder *builder, cudnnHandle_t handle, cudnn_object plan, const cudnn_binding *bindings,
               size_t count, void *workspace);

#endif
#endif
