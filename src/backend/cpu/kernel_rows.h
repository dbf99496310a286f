/* What types the kernels take. The tables are filled from these lists. */
#ifndef REMAT_BACKEND_CPU_KERNEL_ROWS_H
#define REMAT_BACKEND_CPU_KERNEL_ROWS_H

#include "backend/cpu/kernel.h"

/* ROW(operation, types) for every operation on one element type, T: "f" or "d". GEMMs have a list of their own. */
#define KERNEL_ROWS(ROW, T)                            \
    ROW(activate, T T)                                 \
    ROW(activate_backward, T T T T)                    \
    ROW(rectify, T T "u")                              \
    ROW(rectify_backward, "u" T T)                     \
    ROW(add, T T T)                                    \
    ROW(multiply, T T T)                               \
    ROW(scale, T)                                      \
    ROW(accumulate, T T)                               \
    ROW(copy, T T)                                     \
    ROW(convert, T T)                                  \
    ROW(fill, T)                                       \
    ROW(dropout, T T "u")                              \
    ROW(softmax, T T)                                  \
    ROW(softmax_backward, T T T)                       \
    ROW(add_to_rows, T T T)                            \
    ROW(copy_rows, T T)                                \
    ROW(column_sums, T T)                              \
    ROW(add_to_channels, T T)                          \
    ROW(channel_sums, T T)                             \
    ROW(gather, "i" T T)                               \
    ROW(gather_backward, "i" T T)                      \
    ROW(normalize, T T T T T T)                        \
    ROW(normalize_backward, T T T T T T T T "u")       \
    ROW(batch_statistics, T T T T T)                   \
    ROW(batch_scales, T T)                             \
    ROW(batch_normalize, T T T T T T)                  \
    ROW(batch_normalize_backward, T T T T T T T T)     \
    ROW(group_normalize, T T T T T T)                  \
    ROW(group_normalize_backward, T T T T T T T T "u") \
    ROW(attention, T T T T T "i")                      \
    ROW(attention_backward, T T T T T T T T T "iu")    \
    ROW(attention_cached, T T T T "i")                 \
    ROW(put_rows, T "i" T)                             \
    ROW(rotate, T T "i")                               \
    ROW(lstm_cell, T T T T)                            \
    ROW(lstm_cell_backward, T T T T T T T)             \
    ROW(gru_cell, T T T T T)                           \
    ROW(gru_cell_backward, T T T T T T T)              \
    ROW(convolve, T T T T "u")                         \
    ROW(convolve_backward_weight, T T T T "u")         \
    ROW(convolve_backward_input, T T T "u")            \
    ROW(pool_max, T T "i")                             \
    ROW(pool_max, T T "u")                             \
    ROW(pool_max_backward, "i" T T)                    \
    ROW(pool_max_backward, "u" T T)                    \
    ROW(pool_average, T T)                             \
    ROW(pool_average_backward, T T)                    \
    ROW(cross_entropy, T "i" T "u")                    \
    ROW(squared_error, T T T "u")                      \
    ROW(pointwise_loss, T T T "u")                     \
    ROW(count_correct, T "iu")                         \
    ROW(add_squares, T "u")                            \
    ROW(block_squares, T "u")                          \
    ROW(check_finite, T "u")                           \
    ROW(sgd, T T T T "u")                              \
    ROW(adam, T T T T T T "u")                         \
    ROW(lion, T T T T "u")                             \
    ROW(adafactor, T T T T "u")

/* Between fp32 and bf16. */
#define KERNEL_CONVERT_ROWS(ROW) ROW(convert, "bf") ROW(convert, "fb")

/* GEMMs of operands in fp32 and bf16, and of weights in fp16 and blocks, and with results in bf16, as operation.h says. */
#define KERNEL_GEMM_ROWS_OF(ROW, B) \
    ROW(gemm, "f" B "ffff")         \
    ROW(gemm, "b" B "ffff")         \
    ROW(gemm, "f" B "bfff")         \
    ROW(gemm, "b" B "bfff")
#define KERNEL_GEMM_ROWS(ROW)     \
    KERNEL_GEMM_ROWS_OF(ROW, "f") \
    KERNEL_GEMM_ROWS_OF(ROW, "b") \
    KERNEL_GEMM_ROWS_OF(ROW, "h") \
    KERNEL_GEMM_ROWS_OF(ROW, "q") \
    KERNEL_GEMM_ROWS_OF(ROW, "n")

/* Of the fast tables: rows in bf16, with statistics and sums in fp32. */
#define KERNEL_HALF_LINES(ROW)           \
    ROW(normalize, "bffbff")             \
    ROW(normalize_backward, "bfffbbffu") \
    ROW(column_sums, "bf")               \
    ROW(cross_entropy, "bibu")           \
    ROW(count_correct, "biu")
#define KERNEL_HALF_ATTENTION(ROW) ROW(attention, "bbbbfi") ROW(attention_backward, "bbbbfbbbbiu")

/* Embeddings in bf16, or in fp32 for outputs in bf16. */
#define KERNEL_GATHER_ROWS(ROW) ROW(gather, "ibb") ROW(gather, "ibf") ROW(gather, "ifb")

/* Optimizers with weights of type W, and moments in fp32 or in fewer bits. */
#define KERNEL_MOMENT_ROWS_OF(ROW, W) \
    ROW(sgd, "f" W "bfu")             \
    ROW(sgd, "f" W "cfu")             \
    ROW(adam, "f" W "bbffu")          \
    ROW(adam, "f" W "cuffu")          \
    ROW(lion, "f" W "bfu")            \
    ROW(lion, "f" W "cfu")
#define KERNEL_MOMENT_ROWS(ROW)     \
    KERNEL_MOMENT_ROWS_OF(ROW, "f") \
    KERNEL_MOMENT_ROWS_OF(ROW, "b") \
    ROW(sgd, "fbffu") ROW(adam, "fbffffu") ROW(lion, "fbffu") ROW(adafactor, "fbffu")

/* The kernels that work on the step block alone, and calls of the user's functions, are the same in all tables. */
void kernel_finish_loss(const kernel_run *run, const void *args);
void kernel_clip(const kernel_run *run, const void *args);
void kernel_custom(const kernel_run *run, const void *args);
#define KERNEL_STEP_ROWS(ROW) ROW(finish_loss, "u") ROW(clip, "u") ROW(custom, "f") ROW(custom, "d")

/* Neither do copies and checks of bf16. */
void kernel_copy_halves(const kernel_run *run, const void *args);
void kernel_check_halves(const kernel_run *run, const void *args);

/* Nor weights in fp16 and blocks. */
void kernel_convert_blocks(const kernel_run *run, const void *args);
void kernel_gather_blocks(const kernel_run *run, const void *args);
#define KERNEL_PLAIN_ROWS                                                                     \
    {OP_copy, "bb", kernel_copy_halves}, {OP_check_finite, "bu", kernel_check_halves},        \
        {OP_convert, "hf", kernel_convert_blocks}, {OP_convert, "qf", kernel_convert_blocks}, \
        {OP_convert, "nf", kernel_convert_blocks}, {OP_gather, "ihf", kernel_gather_blocks},  \
        {OP_gather, "iqf", kernel_gather_blocks}, {OP_gather, "inf", kernel_gather_blocks},

#endif
