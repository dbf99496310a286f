#include "backend/cuda/cuda_table.h"

#include "backend/cuda/attention_wide.h"
#include "backend/cuda/cudnn_attention.h"

/* Launchers take the struct of their operation; the table calls all of them alike. */
#define X(name)                                                             \
    static cudaError_t launch_##name(const cuda_run *run, const void *args) \
    {                                                                       \
        return cuda_##name(run, args);                                      \
    }
CUDA_OPERATIONS(X)
#undef X

/* Our own kernels are faster than cuDNN's for heads of up to 64 values, and have no tiles for more than 256. */
enum { FASTEST_TILES = 64, WIDEST_TILES = 256 };

/* Wide heads and rows of several segments have plain kernels. */
static bool is_plain(size_t size, tensor_ref positions)
{
    return size > WIDEST_TILES || positions.at;
}

static cudaError_t launch_any_attention(const cuda_run *run, const void *args)
{
    const op_attention *p = args;
    if (p->size > FASTEST_TILES && !p->positions.at && cudnn_attention_takes(run->attention, p) &&
        cudnn_attention_workspace(run->attention, p) <= run->scratch_bytes)
        return cudnn_attention_run(run->attention, run->stream, p, run->scratch) == REMAT_OK ? cudaSuccess
                                                                                             : cudaErrorLaunchFailure;
    return is_plain(p->size, p->positions) ? cuda_attention_wide(run, p) : cuda_attention(run, p);
}

static cudaError_t launch_any_attention_backward(const cuda_run *run, const void *args)
{
    const op_attention_backward *p = args;
    if (p->size > FASTEST_TILES && !p->positions.at && cudnn_attention_backward_takes(run->attention, p))
        return cudnn_attention_backward_run(run->attention, run->stream, p, p->workspace.at) == REMAT_OK
                   ? cudaSuccess
                   : cudaErrorLaunchFailure;
    return is_plain(p->size, p->positions) ? cuda_attention_wide_backward(run, p) : cuda_attention_backward(run, p);
}

/* What cuDNN takes by its sizes it may still refuse when it sees the tensors: there is room for both. */
static uint64_t attention_backward_workspace(cudnn_attention *fused, const op_attention_backward *p)
{
    const uint64_t own = p->size > WIDEST_TILES ? 0 : cuda_attention_backward_workspace(p);
    uint64_t other = 0;
    if (p->size > FASTEST_TILES && cudnn_attention_backward_takes(fused, p))
        other = cudnn_attention_backward_workspace(fused, p);
    return own > other ? own : other;
}

/* Letters are those of dtype_traits, and their tensors may be absent. `v` is fp32 or bf16, `B` a tensor of bf16 that must be there, and
 * `.` one that must be absent. Activations are no part of GEMMs here: they would be computed from sums that were not rounded yet, and a
 * plan that recomputes an activation alone would get other bits. The gradient of an activation is never recomputed, so the last GEMM
 * may multiply by it: the network joins the two in all plans. */
#define ROW(name, types)        {OP_##name, types, launch_##name, NULL},
#define MANY(name, types, many) {OP_##name, types, launch_##name, many},
static const cuda_row rows[] = {
    ROW(gemm, "fffv.v") ROW(gemm, "bbbv.v") ROW(gemm, "bbfv.v") ROW(gemm, "bbb.BB")                         /**/
    ROW(activate, "vv") ROW(activate_backward, "vvvv") ROW(rectify, "vvu") ROW(rectify_backward, "uvv")     /**/
    ROW(add, "vvv") ROW(multiply, "vvv") ROW(scale, "v")                                                    /**/
    ROW(accumulate, "vv") ROW(copy, "ff") ROW(copy, "bb") ROW(convert, "vv") ROW(convert, "hv")             /**/
    ROW(convert, "qv") ROW(convert, "nv") ROW(fill, "v") ROW(dropout, "vvu")                                /**/
    ROW(softmax, "vv") ROW(softmax_backward, "vvv") ROW(add_to_rows, "vvv") ROW(copy_rows, "vv")            /**/
    ROW(column_sums, "vv") ROW(add_to_channels, "vv") ROW(channel_sums, "vv")                               /**/
    ROW(gather, "ivv") ROW(gather, "ihv") ROW(gather, "iqv") ROW(gather, "inv") ROW(gather_backward, "ivv") /**/
    ROW(normalize, "vvvvvv") ROW(normalize_backward, "vvvvvvvvu")                                           /**/
    ROW(batch_statistics, "vvvvv") ROW(batch_scales, "vv") ROW(batch_normalize, "vvvvvv")                   /**/
    ROW(batch_normalize_backward, "vvvvvvvv") ROW(group_normalize, "vvvvvv")                                /**/
    ROW(group_normalize_backward, "vvvvvvvvu")                                                              /**/
    {OP_attention, "fffffi", launch_any_attention, NULL},
    {OP_attention, "bbbbfi", launch_any_attention, NULL},
    {OP_attention_backward, "fffffffffiu", launch_any_attention_backward, NULL},
    {OP_attention_backward, "bbbbfbbbbiu", launch_any_attention_backward, NULL},
    ROW(attention_cached, "vvvvi") ROW(put_rows, "viv") ROW(rotate, "vvi")                                  /**/
    ROW(lstm_cell, "vvvv") ROW(lstm_cell_backward, "vvvvvvv") ROW(gru_cell, "vvvvv")                        /**/
    ROW(gru_cell_backward, "vvvvvvv")                                                                       /**/
    ROW(convolve, "vvvvu") ROW(convolve_backward_weight, "vvvvu") ROW(convolve_backward_input, "vvvu")      /**/
    ROW(pool_max, "vvi") ROW(pool_max, "vvu") ROW(pool_max_backward, "ivv") ROW(pool_max_backward, "uvv")   /**/
    ROW(pool_average, "vv") ROW(pool_average_backward, "vv")                                                /**/
    ROW(cross_entropy, "vivu") ROW(squared_error, "vvvu") ROW(pointwise_loss, "vvvu") ROW(finish_loss, "u") /**/
    ROW(count_correct, "viu") MANY(add_squares, "vu", cuda_add_many_squares) ROW(block_squares, "vu")
        ROW(check_finite, "vu") ROW(clip, "u") /**/
    MANY(sgd, "vvvfu", cuda_many_sgd) MANY(sgd, "vvcfu", cuda_many_sgd) MANY(adam, "vvvvffu", cuda_many_adam)
        MANY(adam, "vvcuffu", cuda_many_adam)                                                       /**/
    MANY(lion, "vvvfu", cuda_many_lion) MANY(lion, "vvcfu", cuda_many_lion) ROW(adafactor, "vvffu") /**/
};

static bool letter_fits(char letter, char wanted)
{
    if (letter == 'B')
        return wanted == 'b';
    if (letter == '.' || wanted == '-')
        return wanted == '-';
    return letter == wanted || (letter == 'v' && (wanted == 'f' || wanted == 'b'));
}

const cuda_row *cuda_table_find(operation op, const char *types)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].op != op)
            continue;
        size_t at = 0;
        while (types[at] && letter_fits(rows[i].types[at], types[at]))
            at++;
        if (!types[at])
            return &rows[i];
    }
    return NULL;
}

uint64_t cuda_table_workspace(cudnn_attention *fused, operation op, const void *args)
{
    switch (op) {
    case OP_normalize_backward: return cuda_normalize_backward_workspace(args);
    case OP_group_normalize_backward: return cuda_group_normalize_backward_workspace(args);
    case OP_attention_backward: return attention_backward_workspace(fused, args);
    case OP_convolve: {
        const op_convolve *p = args;
        return cuda_convolve_workspace(&p->window, p->x.type);
    }
    case OP_convolve_backward_weight: {
        const op_convolve_backward_weight *p = args;
        return cuda_convolve_workspace(&p->window, p->x.type);
    }
    case OP_convolve_backward_input: {
        const op_convolve_backward_input *p = args;
        return cuda_convolve_workspace(&p->window, p->dy.type);
    }
    default: return 0;
    }
}
