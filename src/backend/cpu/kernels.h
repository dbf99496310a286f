/* The mathematics: every operation once, as a table of functions. There are two tables: `reference`, plain loops that
 * anybody can check by reading, and `fast`, compiled for several instruction sets of which the best that this machine
 * has is chosen when the table is asked for.
 *
 * Rules that hold for every function of every table:
 *   - The bits of the result do not depend on `threads`: work is cut at places that depend on the sizes alone, and
 *     partial sums are added in a fixed order.
 *   - Nothing is allocated. What a function needs beyond its arguments lies in `run->scratch`, `scratch_bytes` of the
 *     table for each thread.
 *   - Matrices are row-major and dense unless a leading dimension is given. Sizes of 0 are allowed and do nothing.
 *   - "May overlap" means: may be the same pointer. Anything else must not share memory.
 *   - `accumulate`: the result is added to what is there instead of replacing it. */
#ifndef REMAT_BACKEND_CPU_KERNELS_H
#define REMAT_BACKEND_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <remat/random.h>

#include "backend/cpu/real.h"

/* Who computes. `scratch` is aligned to 64 bytes and holds threads * scratch_bytes of the table. */
typedef struct kernel_run {
    int threads;
    void *scratch;
} kernel_run;

typedef enum kernel_activation {
    KERNEL_NONE,
    KERNEL_RELU,
    KERNEL_LEAKY_RELU, /* slope 0.01 below 0 */
    KERNEL_GELU_TANH,
    KERNEL_GELU_ERF,
    KERNEL_SIGMOID,
    KERNEL_TANH,
    KERNEL_SWISH,
} kernel_activation;

/* What the backward of an activation reads: of relu, leaky_relu, sigmoid and tanh the output, of the others the input. */
static inline bool kernel_activation_reads_output(kernel_activation kind)
{
    return kind == KERNEL_RELU || kind == KERNEL_LEAKY_RELU || kind == KERNEL_SIGMOID || kind == KERNEL_TANH;
}

/* C = op(A) op(B), or C += op(A) op(B). op(A) is m x k, op(B) is k x n; a transposed operand is stored k x m, n x k.
 * `bias` (n values or NULL) is added to every row of C. Where `activated` is not NULL, it gets activation(C) or, where
 * `derivative_at` is not NULL, C * activation'(derivative_at): of the input or the output, as
 * kernel_activation_reads_output says. Both have rows of ldc values; `activated` may be C itself.
 * The sum over k is taken in the same order for every m and n: a product cut into several by rows of C, or by columns,
 * has the same bits. Cut along k at multiples of KERNEL_K_BLOCK, the parts added with `accumulate`, it has the same bits
 * as well. */
#define KERNEL_K_BLOCK 384
typedef struct kernel_product {
    bool transpose_a, transpose_b, accumulate;
    size_t m, n, k;
    const real *a;
    size_t lda;
    const real *b;
    size_t ldb;
    real *c;
    size_t ldc;
    const real *bias;
    kernel_activation activation;
    real *activated;
    const real *derivative_at;
} kernel_product;

/* Self-attention of `batch` sequences of `steps` rows. q, k and v are given by the pointer to their first value and the
 * distance between rows, so that they may lie side by side in one matrix; head h takes the columns h*size .. of each.
 * Nothing of steps x steps is held: scores are made a block at a time. `sums` gets the log of the softmax's denominator,
 * batch x heads x steps. Scores are multiplied by 1/sqrt(size). */
typedef struct kernel_attention {
    size_t batch, heads, steps, size;
    bool causal;
    const real *q, *k, *v;
    size_t row; /* distance between rows of q, k, v, and of dq, dk, dv */
    real *out;  /* of the forward; read by the backward */
    size_t out_row;
    real *sums;
    /* of the backward */
    const real *dout;
    real *dq, *dk, *dv;
    real *workspace; /* attention_workspace(): of the backward only */
} kernel_attention;

/* A convolution or pooling window. Images are channels x height x width; weights are out x in x kernel_h x kernel_w. */
typedef struct kernel_window {
    size_t batch;
    size_t in_channels, in_h, in_w;
    size_t out_channels, out_h, out_w;
    size_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} kernel_window;

/* One optimizer step over one parameter. `scale` multiplies the gradient first (clipping). */
typedef struct kernel_sgd {
    real rate, momentum, decay, scale;
    bool nesterov;
} kernel_sgd;
typedef struct kernel_adam {
    real rate, beta1, beta2, epsilon, decay, scale;
    bool decoupled;                /* adamw: weights shrink by rate * decay; else decay * weight joins the gradient */
    real correction1, correction2; /* 1 - beta^step, by the caller in double */
} kernel_adam;

typedef struct kernel_table {
    const char *name;     /* "reference", "avx512", "avx2", "portable" */
    size_t scratch_bytes; /* for each thread, a multiple of 64 */

    void (*product)(const kernel_run *run, const kernel_product *product);

    /* y = activation(x); x and y may overlap. dx (+)= dy * activation'(.), from x or y as kernel_activation_reads_output
     * says (the other may be NULL); dx may overlap dy. */
    void (*activate)(const kernel_run *run, kernel_activation kind, size_t count, const real *x, real *y);
    void (*activate_backward)(const kernel_run *run, kernel_activation kind, size_t count, const real *x, const real *y,
                              const real *dy, real *dx, bool accumulate);

    /* Softmax of every row. y may overlap x, dx may overlap dy. */
    void (*softmax)(const kernel_run *run, size_t rows, size_t columns, const real *x, real *y);
    void (*softmax_backward)(const kernel_run *run, size_t rows, size_t columns, const real *y, const real *dy,
                             real *dx, bool accumulate);

    /* y = a + b; y (+)= a * b; y += x; y *= factor. y may overlap a or b. */
    void (*add)(const kernel_run *run, size_t count, const real *a, const real *b, real *y);
    void (*multiply)(const kernel_run *run, size_t count, const real *a, const real *b, real *y, bool accumulate);
    void (*accumulate)(const kernel_run *run, size_t count, const real *x, real *y);
    void (*scale)(const kernel_run *run, size_t count, real factor, real *y);
    /* Every row of y = that row of x + `addend`; y may overlap x. */
    void (*add_to_rows)(const kernel_run *run, size_t rows, size_t columns, const real *x, const real *addend, real *y);

    /* sums (+)= the sum of every column. */
    void (*column_sums)(const kernel_run *run, size_t rows, size_t columns, const real *x, real *sums, bool accumulate);
    /* The sum of squares, in double and fixed order. */
    double (*sum_of_squares)(const kernel_run *run, size_t count, const real *x);

    /* Normalisation of every row: centred by its mean (layer normalisation) or not (rms). `shift` may be NULL. `means` is
     * NULL for rms; `scales` gets 1/deviation; y NULL: only these. The backward makes all gradients in one pass over the
     * rows; dx may overlap dy or be NULL; dgain and dshift (may be NULL) are accumulated into or replaced as
     * `accumulate_parameters` says. */
    void (*normalize)(const kernel_run *run, size_t rows, size_t columns, real epsilon, const real *x, const real *gain,
                      const real *shift, real *y, real *means, real *scales);
    void (*normalize_backward)(const kernel_run *run, size_t rows, size_t columns, const real *x, const real *gain,
                               const real *means, const real *scales, const real *dy, real *dx, bool accumulate,
                               real *dgain, real *dshift, bool accumulate_parameters, real *workspace);

    /* Batch normalisation over batch x channels x area, statistics for each channel. Training: makes means and scales
     * (1/deviation, biased variance). `running_*` (both NULL: leave them alone) move by `momentum` towards the batch's
     * mean and unbiased variance. Evaluation: the same formula with the given statistics. Of the
     * backward dx may overlap dy or be NULL. */
    void (*batch_statistics)(const kernel_run *run, size_t batch, size_t channels, size_t area, real epsilon,
                             const real *x, real *means, real *scales, real momentum, real *running_mean,
                             real *running_variance);
    void (*batch_normalize)(const kernel_run *run, size_t batch, size_t channels, size_t area, const real *x,
                            const real *means, const real *scales, const real *gain, const real *shift, real *y);
    void (*batch_normalize_backward)(const kernel_run *run, size_t batch, size_t channels, size_t area, const real *x,
                                     const real *means, const real *scales, const real *gain, const real *dy, real *dx,
                                     bool accumulate, real *dgain, real *dshift, bool accumulate_parameters);

    void (*attention)(const kernel_run *run, const kernel_attention *attention);
    void (*attention_backward)(const kernel_run *run, const kernel_attention *attention); /* replaces dq, dk, dv */

    /* y[row] = table[ids[row]]; dtable (+)= the sums of dy over equal ids, without races. Ids are checked by the caller. */
    void (*gather)(const kernel_run *run, size_t rows, size_t width, const int32_t *ids, const real *table, real *y);
    void (*gather_backward)(const kernel_run *run, size_t rows, size_t width, size_t entries, const int32_t *ids,
                            const real *dy, real *dtable, bool accumulate);

    /* y = x / keep where the stream's number of the position is below keep, else 0: forward and backward alike.
     * y may overlap x. */
    void (*dropout)(const kernel_run *run, size_t count, const remat_random *stream, real keep, const real *x, real *y,
                    bool accumulate);

    /* Convolution; `bias` may be NULL; workspace as window_workspace() says. */
    void (*convolve)(const kernel_run *run, const kernel_window *window, const real *x, const real *weight,
                     const real *bias, real *y, real *workspace);
    void (*convolve_backward_weight)(const kernel_run *run, const kernel_window *window, const real *x, const real *dy,
                                     real *dweight, real *dbias, bool accumulate, real *workspace);
    void (*convolve_backward_input)(const kernel_run *run, const kernel_window *window, const real *weight,
                                    const real *dy, real *dx, bool accumulate, real *workspace);

    /* Pooling. max: `chosen` gets the position of the largest value inside the image, the first of equals; NaN counts as the
     * largest; y may be NULL, where only the positions are wanted. average: divides by the number of values inside the
     * image. in_channels == out_channels. */
    void (*pool_max)(const kernel_run *run, const kernel_window *window, const real *x, real *y, int32_t *chosen);
    void (*pool_max_backward)(const kernel_run *run, const kernel_window *window, const int32_t *chosen, const real *dy,
                              real *dx, bool accumulate);
    void (*pool_average)(const kernel_run *run, const kernel_window *window, const real *x, real *y);
    void (*pool_average_backward)(const kernel_run *run, const kernel_window *window, const real *dy, real *dx,
                                  bool accumulate);

    /* Losses: the sum over all rows or values, in double and fixed order; the caller divides. The gradient is multiplied by
     * `factor`; gradient NULL: only the loss. Cross entropy reads logits and labels (0..columns-1; a negative label counts
     * nothing) and may write its gradient over the logits. */
    double (*cross_entropy)(const kernel_run *run, size_t rows, size_t columns, const real *logits,
                            const int32_t *labels, real factor, real *gradient);
    double (*squared_error)(const kernel_run *run, size_t count, const real *x, const real *target, real factor,
                            real *gradient, bool accumulate);

    /* One pass over weight, gradient and moments. `velocity` is NULL without momentum. */
    void (*sgd)(const kernel_run *run, const kernel_sgd *options, size_t count, const real *gradient, real *weight,
                real *velocity);
    void (*adam)(const kernel_run *run, const kernel_adam *options, size_t count, const real *gradient, real *weight,
                 real *first, real *second);

    /* The 32-bit numbers first .. first+count-1 of the stream, as remat_random_block counts them; first is a multiple of
     * 64. */
    void (*draw)(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers);

    /* Multiply-adds on registers and nothing else, on all threads, to find the machine's limit: returns how many floating
     * point operations that were. */
    double (*exercise)(const kernel_run *run, size_t rounds);
} kernel_table;

/* Every function of the table by name: tables are filled, and their functions declared, from this list. */
#define KERNEL_LIST(X)                                                                                               \
    X(product)                                                                                                       \
    X(activate)                                                                                                      \
    X(activate_backward)                                                                                             \
    X(softmax)                                                                                                       \
    X(softmax_backward)                                                                                              \
    X(add)                                                                                                           \
    X(multiply) X(accumulate) X(scale) X(add_to_rows) X(column_sums) X(sum_of_squares) X(normalize)                  \
        X(normalize_backward) X(batch_statistics) X(batch_normalize) X(batch_normalize_backward) X(attention)        \
            X(attention_backward) X(gather) X(gather_backward) X(dropout) X(convolve) X(convolve_backward_weight)    \
                X(convolve_backward_input) X(pool_max) X(pool_max_backward) X(pool_average) X(pool_average_backward) \
                    X(cross_entropy) X(squared_error) X(sgd) X(adam) X(draw) X(exercise)

/* The tables. `fast` is the best for this processor; in a build for double it is the reference. */
const kernel_table *kernels_reference(void);
const kernel_table *kernels_fast(void);

/* The fast tables that this processor can run, best first, ended by NULL; none in a build for double. */
const kernel_table *const *kernels_available(void);

/* Values of workspace (not bytes) that the functions above take from their caller; the same for both tables. */
size_t attention_workspace(size_t batch, size_t heads, size_t steps, size_t size);
size_t normalize_workspace(size_t rows, size_t columns);
size_t window_workspace(const kernel_window *window);

#endif
