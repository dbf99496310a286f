/* cuDNN finds its attention kernels by the shape of the graph: it must have these operations, in this order of computation,
 * with these element types. Nothing of steps x steps is stored by the forward graph.
 *
 * Tensors are batch x heads x steps x size. K (and V in the backward pass) are described as their transposes. */
#include "backend/cuda/cudnn_attention_graphs.h"

#ifdef REMAT_HAS_CUDNN

/* Matrices with heads as columns, `row` values from step to step. */
static cudnn_shape columns(const attention_sizes *s, int64_t heads, int64_t steps, int64_t row)
{
    return (cudnn_shape){{s->batch, heads, steps, s->size}, {steps * row, s->size, row, 1}};
}

static cudnn_shape transposed(cudnn_shape shape)
{
    return (cudnn_shape){{shape.sizes[0], shape.sizes[1], shape.sizes[3], shape.sizes[2]},
                         {shape.strides[0], shape.strides[1], shape.strides[3], shape.strides[2]}};
}

static cudnn_shape dense(int64_t batch, int64_t heads, int64_t steps, int64_t size)
{
    return (cudnn_shape){{batch, heads, steps, size}, {heads * steps * size, steps * size, size, 1}};
}

/* One for each query and key. */
static cudnn_shape scores_shape(const attention_sizes *s)
{
    return dense(s->batch, s->heads, s->steps, s->keys);
}

/* One for each query. */
static cudnn_shape sums_shape(const attention_sizes *s)
{
    return dense(s->batch, s->heads, s->steps, 1);
}

/* ---- the mask ---- */

/* The position of each score along an axis: 2 is the query's, 3 the key's. */
static cudnn_object positions(cudnn_builder *builder, const attention_sizes *s, cudnn_object scores, int64_t axis)
{
    cudnn_object y = cudnn_inner(builder, CUDNN_DATA_INT32, scores_shape(s));
    cudnn_pointwise(
        builder, &(cudnn_pointwise_args){
                     .mode = CUDNN_POINTWISE_GEN_INDEX, .x = scores, .y = y, .type = CUDNN_DATA_FLOAT, .axis = axis});
    return y;
}

/* The scores where a `compare` b holds, and the score of a masked key elsewhere. */
static cudnn_object keep_where(cudnn_builder *builder, const attention_sizes *s, cudnn_object scores, cudnn_object a,
                               cudnnPointwiseMode_t compare, cudnn_object b, cudnn_object masked)
{
    cudnn_object seen = cudnn_inner(builder, CUDNN_DATA_BOOLEAN, scores_shape(s));
    cudnn_pointwise(builder,
                    &(cudnn_pointwise_args){.mode = compare, .x = a, .b = b, .y = seen, .type = CUDNN_DATA_BOOLEAN});
    cudnn_object y = cudnn_inner(builder, CUDNN_DATA_FLOAT, scores_shape(s));
    cudnn_pointwise(builder, &(cudnn_pointwise_args){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                                     .x = scores,
                                                     .b = masked,
                                                     .t = seen,
                                                     .y = y,
                                                     .type = CUDNN_DATA_FLOAT});
    return y;
}

/* A query sees the keys up to its own position, and with a window only those less than `window` before it. */
static cudnn_object mask(cudnn_builder *builder, const attention_sizes *s, cudnn_object scores)
{
    if (!s->causal)
        return scores;
    cudnn_object masked = cudnn_number(builder, ATTENTION_MASKED);
    cudnn_object query = positions(builder, s, scores, 2), key = positions(builder, s, scores, 3);
    scores = keep_where(builder, s, scores, query, CUDNN_POINTWISE_CMP_GE, key, masked);
    if (!s->window)
        return scores;
    query = positions(builder, s, scores, 2);
    key = positions(builder, s, scores, 3);
    key = cudnn_binary(builder, CUDNN_POINTWISE_ADD, key, cudnn_number(builder, ATTENTION_WINDOW), scores_shape(s));
    return keep_where(builder, s, scores, key, CUDNN_POINTWISE_CMP_GT, query, masked);
}

/* ---- forward ---- */

static cudnn_object scaled_scores(cudnn_builder *builder, const attention_sizes *s, cudnn_object q, cudnn_object k,
                                  cudnn_object scale)
{
    cudnn_object scores = cudnn_inner(builder, CUDNN_DATA_FLOAT, scores_shape(s));
    cudnn_matmul(builder, q, k, scores);
    return cudnn_binary(builder, CUDNN_POINTWISE_MUL, scores, scale, scores_shape(s));
}

void attention_forward_graph(cudnn_builder *builder, const attention_sizes *s)
{
    const cudnn_shape query = columns(s, s->heads, s->steps, s->row);
    const cudnn_shape key = columns(s, s->key_heads, s->keys, s->key_row);
    cudnn_object q = cudnn_tensor(builder, ATTENTION_Q, CUDNN_DATA_BFLOAT16, query);
    cudnn_object k = cudnn_tensor(builder, ATTENTION_K, CUDNN_DATA_BFLOAT16, transposed(key));
    cudnn_object v = cudnn_tensor(builder, ATTENTION_V, CUDNN_DATA_BFLOAT16, key);
    cudnn_object out =
        cudnn_tensor(builder, ATTENTION_OUT, CUDNN_DATA_BFLOAT16, columns(s, s->heads, s->steps, s->out_row));
    cudnn_object sums = cudnn_tensor(builder, ATTENTION_SUMS, CUDNN_DATA_FLOAT, sums_shape(s));

    cudnn_object scores = scaled_scores(builder, s, q, k, cudnn_number(builder, ATTENTION_SCALE));
    scores = mask(builder, s, scores);
    cudnn_object largest = cudnn_inner(builder, CUDNN_DATA_FLOAT, sums_shape(s));
    cudnn_reduce(builder, CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    cudnn_object below = cudnn_binary(builder, CUDNN_POINTWISE_SUB, scores, largest, scores_shape(s));
    cudnn_object weights = cudnn_unary(builder, CUDNN_POINTWISE_EXP, below, scores_shape(s));
    cudnn_object total = cudnn_inner(builder, CUDNN_DATA_FLOAT, sums_shape(s));
    cudnn_reduce(builder, CUDNN_REDUCE_TENSOR_ADD, weights, total);
    cudnn_object log_total = cudnn_unary(builder, CUDNN_POINTWISE_LOG, total, sums_shape(s));
    cudnn_pointwise(
        builder, &(cudnn_pointwise_args){
                     .mode = CUDNN_POINTWISE_ADD, .x = largest, .b = log_total, .y = sums, .type = CUDNN_DATA_FLOAT});
    cudnn_object probabilities = cudnn_inner(builder, CUDNN_DATA_BFLOAT16, scores_shape(s));
    cudnn_pointwise(
        builder,
        &(cudnn_pointwise_args){
            .mode = CUDNN_POINTWISE_DIV, .x = weights, .b = total, .y = probabilities, .type = CUDNN_DATA_FLOAT});
    cudnn_matmul(builder, probabilities, v, out);
}

/* ---- backward ---- */

/* The sum over dout * out of each query: the mean of the gradients of its probabilities. It is stored. */
static cudnn_object gradient_means(cudnn_builder *builder, const attention_sizes *s, cudnn_object dout,
                                   cudnn_object out)
{
    cudnn_object product =
        cudnn_binary(builder, CUDNN_POINTWISE_MUL, dout, out, dense(s->batch, s->heads, s->steps, s->size));
    cudnn_object sum = cudnn_inner(builder, CUDNN_DATA_FLOAT, sums_shape(s));
    cudnn_reduce(builder, CUDNN_REDUCE_TENSOR_ADD, product, sum);
    cudnn_object means = cudnn_tensor(builder, ATTENTION_MEANS, CUDNN_DATA_FLOAT, sums_shape(s));
    cudnn_pointwise(builder, &(cudnn_pointwise_args){.mode = CUDNN_POINTWISE_MUL,
                                                     .x = sum,
                                                     .b = cudnn_number(builder, ATTENTION_ONE),
                                                     .y = means,
                                                     .type = CUDNN_DATA_FLOAT});
    return means;
}

/* gradient = a' b for each head; heads that share keys and values are added up. */
static void key_gradient(cudnn_builder *builder, const attention_sizes *s, cudnn_object a, cudnn_object b,
                         int64_t gradient_uid)
{
    const cudnn_shape shape = columns(s, s->key_heads, s->keys, s->key_row);
    cudnn_object gradient = cudnn_tensor(builder, gradient_uid, CUDNN_DATA_BFLOAT16, shape);
    cudnn_object a_transposed = cudnn_inner(builder, CUDNN_DATA_BFLOAT16, transposed(scores_shape(s)));
    cudnn_reshape(builder, a, a_transposed);
    if (s->heads == s->key_heads) {
        cudnn_matmul(builder, a_transposed, b, gradient);
        return;
    }
    cudnn_object of_heads = cudnn_inner(builder, CUDNN_DATA_BFLOAT16, dense(s->batch, s->heads, s->keys, s->size));
    cudnn_matmul(builder, a_transposed, b, of_heads);
    cudnn_reduce(builder, CUDNN_REDUCE_TENSOR_ADD, of_heads, gradient);
}

/* dq is one product, straight to its tensor, which is what makes cuDNN take an algorithm that adds in a fixed order. Through a
 * tensor of partial sums in fp32 it would take one that adds with atomics. */
void attention_backward_graph(cudnn_builder *builder, const attention_sizes *s)
{
    const cudnn_shape query = columns(s, s->heads, s->steps, s->row);
    const cudnn_shape key = columns(s, s->key_heads, s->keys, s->key_row);
    const cudnn_shape result = columns(s, s->heads, s->steps, s->out_row);
    cudnn_object q = cudnn_tensor(builder, ATTENTION_Q, CUDNN_DATA_BFLOAT16, query);
    cudnn_object k = cudnn_tensor(builder, ATTENTION_K, CUDNN_DATA_BFLOAT16, transposed(key));
    cudnn_object v = cudnn_tensor(builder, ATTENTION_V, CUDNN_DATA_BFLOAT16, transposed(key));
    cudnn_object out = cudnn_tensor(builder, ATTENTION_OUT, CUDNN_DATA_BFLOAT16, result);
    cudnn_object dout = cudnn_tensor(builder, ATTENTION_DOUT, CUDNN_DATA_BFLOAT16, result);
    cudnn_object sums = cudnn_tensor(builder, ATTENTION_SUMS, CUDNN_DATA_FLOAT, sums_shape(s));
    cudnn_object dq = cudnn_tensor(builder, ATTENTION_DQ, CUDNN_DATA_BFLOAT16, query);
    cudnn_object scale = cudnn_number(builder, ATTENTION_SCALE);

    cudnn_object means = gradient_means(builder, s, dout, out);
    cudnn_object scores = scaled_scores(builder, s, q, k, scale);
    scores = cudnn_binary(builder, CUDNN_POINTWISE_SUB, scores, sums, scores_shape(s));
    scores = mask(builder, s, scores);
    cudnn_object probabilities = cudnn_unary(builder, CUDNN_POINTWISE_EXP, scores, scores_shape(s));
    key_gradient(builder, s, probabilities, dout, ATTENTION_DV);

    cudnn_object d = cudnn_inner(builder, CUDNN_DATA_FLOAT, scores_shape(s));
    cudnn_matmul(builder, dout, v, d);
    d = cudnn_binary(builder, CUDNN_POINTWISE_SUB, d, means, scores_shape(s));
    d = cudnn_binary(builder, CUDNN_POINTWISE_MUL, d, probabilities, scores_shape(s));
    d = cudnn_binary(builder, CUDNN_POINTWISE_MUL, d, scale, scores_shape(s));
    key_gradient(builder, s, d, q, ATTENTION_DK);

    cudnn_object keys = cudnn_inner(builder, CUDNN_DATA_BFLOAT16, key);
    cudnn_reshape(builder, k, keys);
    cudnn_matmul(builder, d, keys, dq);
}

#else

typedef int cudnn_attention_graphs_are_absent; /* a file must hold something */

#endif
