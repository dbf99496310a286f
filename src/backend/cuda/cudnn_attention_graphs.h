/* Attention as graphs of cuDNN's operations. */
#ifndef REMAT_BACKEND_CUDA_CUDNN_ATTENTION_GRAPHS_H
#define REMAT_BACKEND_CUDA_CUDNN_ATTENTION_GRAPHS_H

#include "backend/cuda/cudnn_graph_builder.h"

#ifdef REMAT_HAS_CUDNN

/* What a plan depends on; see op_attention. All members are int64_t: two are the same where their bytes are. */
typedef struct attention_sizes {
    int64_t backward; /* 0 or 1 */
    int64_t batch, heads, key_heads, steps, keys, size;
    int64_t row, key_row, out_row;
    int64_t causal, window; /* window 0: all */
} attention_sizes;

/* The tensors of the graphs. */
enum {
    ATTENTION_Q = 1,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_OUT,
    ATTENTION_SUMS,
    ATTENTION_DOUT,
    ATTENTION_DQ,
    ATTENTION_DK,
    ATTENTION_DV,
    ATTENTION_MEANS,  /* of the gradients of the probabilities: batch x heads x steps in fp32, in the workspace */
    ATTENTION_SCALE,  /* numbers in fp32, by value: 1 / sqrt(size), */
    ATTENTION_MASKED, /* the score of a key that is not seen, */
    ATTENTION_WINDOW, /* the window, */
    ATTENTION_ONE,    /* and 1 */
};

void attention_forward_graph(cudnn_builder *builder, const attention_sizes *sizes);
void attention_backward_graph(cudnn_builder *builder, const attention_sizes *sizes);

#endif
#endif
