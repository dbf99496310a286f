/* The operations that every backend computes, each with the struct of its arguments.
 *
 * Layers record operations (recording.h), a backend finds a kernel for each by the operation and the element types of its
 * tensors (backend.h), and a queue runs them. Rules that hold for every kernel of every backend:
 *
 *   - The bits of the result do not depend on the number of threads: work is split at places that depend on the sizes
 *     alone, and partial sums are added in a fixed order.
 *   - Nothing is allocated. What a kernel needs beyond its arguments is in its workspace (an argument, planned) or in the
 *     scratch memory of the queue (of a fixed size).
 *   - Matrices are row-major and dense unless a row length is given. Sizes of 0 are allowed and do nothing.
 *   - "May overlap" means: may be the same address. Anything else must not share memory.
 *   - `accumulate`: the result is added to what is there instead of replacing it.
 *   - Numbers that are the same in every step are arguments, in double. Numbers that change from step to step, and numbers
 *     that come back, are in the step block. So a step can be recorded once and run many times.
 *
 * Every struct begins with its tensors, as many as OPERATION_LIST says; what is not a tensor follows. */
#ifndef REMAT_BACKEND_OPERATION_H
#define REMAT_BACKEND_OPERATION_H

#include <math.h>
#include <stdbool.h>

#include <remat/custom_layer.h>

#include "backend/rotary.h"
#include "backend/tensor.h"

/* ---- the step block ---- */

/* The step block is in the backend's memory. The host copies it in before a run and out after it. Kernels read the
 * first part and update the second. */
typedef struct step_block {
    /* Set by the host. */
    uint64_t seed; /* random numbers come from the stream (seed, layer, step) */
    uint32_t step;
    uint32_t labels; /* of all micro-batches of the step, without negative ones; of losses with `by_labels` */
    double rate;     /* the learning rate */
    double correction1, correction2; /* of adam: 1 - beta^steps; see op_adafactor */
    /* Set by kernels. Before a step the host sets `scale` to 1 and the others to 0. */
    double scale;     /* multiplies every gradient that an optimizer reads */
    double squares;   /* of all gradients, summed: the square of the global norm */
    double loss_sum;  /* over the rows of a loss so far */
    double loss;      /* mean losses of all micro-batches so far, summed */
    uint64_t correct; /* rows whose largest logit is the label's */
    uint64_t broken;  /* 1 + the number of the first check_finite that failed; 0: none did */
} step_block;

/* What divides a loss: of a step without labels nothing is learned, and its loss is 0. */
static inline double step_labels(const step_block *block)
{
    return block->labels ? (double)block->labels : 1;
}

/* Whether optimizers may change weights: the loss, the norm and what was checked are finite. */
static inline bool step_is_finite(const step_block *block)
{
    return isfinite(block->loss) && isfinite(block->squares) && block->broken == 0;
}

/* ---- GEMM ---- */

typedef enum activation_kind {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_LEAKY_RELU, /* slope 0.01 below 0 */
    ACTIVATION_GELU_TANH,
    ACTIVATION_GELU_ERF,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    ACTIVATION_SWISH,
} activation_kind;

/* The backward of relu, leaky_relu, sigmoid and tanh reads the output; that of the others reads the input. */
static inline bool activation_reads_output(activation_kind kind)
{
    return kind == ACTIVATION_RELU || kind == ACTIVATION_LEAKY_RELU || kind == ACTIVATION_SIGMOID ||
           kind == ACTIVATION_TANH;
}

/* Whether the derivative has two values, one above 0 and one elsewhere. */
static inline bool activation_is_rectifier(activation_kind kind)
{
    return kind == ACTIVATION_RELU || kind == ACTIVATION_LEAKY_RELU;
}

/* C = op(A) op(B), or C += op(A) op(B). op(A) is m x k, op(B) is k x n; a transposed operand is stored k x m, n x k.
 * `bias` (n values or none) is added to every row of C. If `activated` is given, it receives activation(C). If
 * `derivative_at` is given too, it receives C * activation'(derivative_at) instead; derivative_at is the input or the
 * output of the activation, as activation_reads_output says. Both have rows of ldc values; `activated` may be C itself.
 * On a processor, the sum over k has the same order for every m and n. So a GEMM that is split by rows or columns of C gives the
 * same bits. It also gives the same bits if it is split along k at multiples of OPERATION_K_BLOCK and the parts are added
 * with `accumulate`. A and B may be in bf16, and so may C if nothing is activated and k is at most OPERATION_K_BLOCK, or any k if
 * the backend `rounds_once`. `half_result`: C is the sum in fp32 of what is to be rounded to bf16, and operands are multiplied as if C were
 * in bf16. */
#define OPERATION_K_BLOCK 384
typedef struct op_gemm {
    tensor_ref a, b, c, bias, activated, derivative_at;
    size_t m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b, accumulate, half_result;
    activation_kind activation;
} op_gemm;

/* ---- value by value ---- */

/* y = activation(x). They may overlap. */
typedef struct op_activate {
    tensor_ref x, y;
    size_t count;
    activation_kind kind;
} op_activate;

/* dx (+)= dy * activation'(.), from x or y as activation_reads_output says; the other may be none. dx may overlap dy. */
typedef struct op_activate_backward {
    tensor_ref x, y, dy, dx;
    size_t count;
    activation_kind kind;
    bool accumulate;
} op_activate_backward;

/* The same of an activation whose derivative has two values (activation_is_rectifier), which leaves one bit for each value: bit i % 8
 * of byte i / 8 of `positive` says whether x[i] is above 0, and bits behind the last value are 0. Without y, only the bits are made.
 * They are the same from the output as from the input. y may overlap x. */
typedef struct op_rectify {
    tensor_ref x, y, positive;
    size_t count;
    activation_kind kind;
} op_rectify;

/* dx (+)= dy * activation'(.), from the bits. The result has the bits of activate_backward. dx may overlap dy. */
typedef struct op_rectify_backward {
    tensor_ref positive, dy, dx;
    size_t count;
    activation_kind kind;
    bool accumulate;
} op_rectify_backward;

/* y = a + b. y may overlap a or b. */
typedef struct op_add {
    tensor_ref a, b, y;
    size_t count;
} op_add;

/* y (+)= a * b. y may overlap a or b. */
typedef struct op_multiply {
    tensor_ref a, b, y;
    size_t count;
    bool accumulate;
} op_multiply;

/* y *= factor. */
typedef struct op_scale {
    tensor_ref y;
    size_t count;
    double factor;
} op_scale;

/* y += x. */
typedef struct op_accumulate {
    tensor_ref x, y;
    size_t count;
} op_accumulate;

/* y = x. */
typedef struct op_copy {
    tensor_ref x, y;
    size_t count;
} op_copy;

/* y = x in another type, rounded to nearest even. Only between fp32 and bf16, and from fp16 and blocks to fp32. */
typedef struct op_convert {
    tensor_ref x, y;
    size_t count;
} op_convert;

/* Every value of y becomes `value`. */
typedef struct op_fill {
    tensor_ref y;
    size_t count;
    double value;
} op_fill;

/* y (+)= x / keep if the random number of the position is below keep, else 0; the same forward and backward. The random
 * stream is that of `layer` and the seed and step of the step block. y may overlap x. */
typedef struct op_dropout {
    tensor_ref x, y, step;
    size_t count;
    uint32_t layer;
    double keep;
    bool accumulate;
} op_dropout;

/* ---- rows ---- */

/* Softmax of every row. y may overlap x. */
typedef struct op_softmax {
    tensor_ref x, y;
    size_t rows, columns;
} op_softmax;

/* dx may overlap dy. */
typedef struct op_softmax_backward {
    tensor_ref y, dy, dx;
    size_t rows, columns;
    bool accumulate;
} op_softmax_backward;

/* Every row of y = that row of x + addend. y may overlap x. */
typedef struct op_add_to_rows {
    tensor_ref x, addend, y;
    size_t rows, columns;
} op_add_to_rows;

/* Rows of `columns` values from x to y; the rows of each side are x_row and y_row values apart. */
typedef struct op_copy_rows {
    tensor_ref x, y;
    size_t rows, columns, x_row, y_row;
    bool accumulate;
} op_copy_rows;

/* y += the addend of every channel; y is batch x channels x area. */
typedef struct op_add_to_channels {
    tensor_ref addend, y;
    size_t batch, channels, area;
} op_add_to_channels;

/* sums (+)= the sum of every channel; x is batch x channels x area. */
typedef struct op_channel_sums {
    tensor_ref x, sums;
    size_t batch, channels, area;
    bool accumulate;
} op_channel_sums;

/* sums (+)= the sum of every column. */
typedef struct op_column_sums {
    tensor_ref x, sums;
    size_t rows, columns;
    bool accumulate;
} op_column_sums;

/* y[row] = table[ids[row]]. Ids are checked where data comes in. */
typedef struct op_gather {
    tensor_ref ids, table, y;
    size_t rows, width;
} op_gather;

/* dtable (+)= the sums of dy over equal ids, in the order of the rows. */
typedef struct op_gather_backward {
    tensor_ref ids, dy, dtable;
    size_t rows, width, entries;
    bool accumulate;
} op_gather_backward;

/* ---- normalisation ---- */

/* Normalizes every row to deviation 1, around its mean (layer normalisation) or around 0 (rms), then multiplies by the
 * gain and adds the shift. `shift` may be none. `means` is none for rms; `scales` gets 1/deviation. Without y, only
 * means and scales are computed. */
typedef struct op_normalize {
    tensor_ref x, gain, shift, y, means, scales;
    size_t rows, columns;
    double epsilon;
} op_normalize;

/* All gradients in one pass over the rows. dx may overlap dy or be none; `accumulate_parameters` applies to dgain and
 * dshift, which may be none. */
typedef struct op_normalize_backward {
    tensor_ref x, gain, means, scales, dy, dx, dgain, dshift, workspace;
    size_t rows, columns;
    bool accumulate, accumulate_parameters;
} op_normalize_backward;

/* Batch normalisation over batch x channels x area, statistics for each channel: means and scales (1/deviation, biased
 * variance). The running statistics move by `momentum` towards the batch's mean and unbiased variance, unless both are
 * none, or these are not finite. */
typedef struct op_batch_statistics {
    tensor_ref x, means, scales, running_mean, running_variance;
    size_t batch, channels, area;
    double epsilon, momentum;
} op_batch_statistics;

/* scales = 1 / sqrt(variance + epsilon): for evaluation with the running statistics. */
typedef struct op_batch_scales {
    tensor_ref variance, scales;
    size_t channels;
    double epsilon;
} op_batch_scales;

/* y may overlap x. */
typedef struct op_batch_normalize {
    tensor_ref x, means, scales, gain, shift, y;
    size_t batch, channels, area;
} op_batch_normalize;

/* dx may overlap dy or be none. */
typedef struct op_batch_normalize_backward {
    tensor_ref x, means, scales, gain, dy, dx, dgain, dshift;
    size_t batch, channels, area;
    bool accumulate, accumulate_parameters;
} op_batch_normalize_backward;

/* Group normalisation over batch x channels x area: means and scales (1/deviation, biased variance) for each group of
 * channels of each sample, batch x groups of them. `gain` and `shift`, of each channel, may be none. Without y, only means
 * and scales are computed. */
typedef struct op_group_normalize {
    tensor_ref x, gain, shift, y, means, scales;
    size_t batch, channels, area, groups;
    double epsilon;
} op_group_normalize;

/* dx may overlap dy or be none; dgain and dshift may both be none. */
typedef struct op_group_normalize_backward {
    tensor_ref x, gain, means, scales, dy, dx, dgain, dshift, workspace;
    size_t batch, channels, area, groups;
    bool accumulate, accumulate_parameters;
} op_group_normalize_backward;

/* ---- attention ---- */

/* softmax(q k' / sqrt(size)) v for `batch` sequences of `steps` rows. Rows of q are `row` values apart, those of k and v
 * `key_row`, so that the three may be side by side in one matrix. Head h uses `size` columns of each, from h * size on. No matrix of
 * steps x steps is held: scores are computed one block at a time. `sums` gets the log of the softmax's denominator,
 * batch x heads x steps.
 *
 * With `group` above 1, so many heads in a row share the columns of k and v: head h uses those of head h / group.
 *
 * `positions` (none, or an int32 for each row) is for causal attention to rows that hold several segments: a segment begins where
 * the position is 0, and attention does not leave it. `sums` then has heads x rows of each segment, one segment after the other. */
typedef struct op_attention {
    tensor_ref q, k, v, out, sums, positions;
    size_t batch, heads, steps, size, row, out_row;
    size_t keys, key_row; /* of k and v; for self-attention the same as steps and row. At least one key */
    size_t group;         /* divides `heads`; 0 counts as 1 */
    size_t window;        /* causal attention sees at most so many keys, its own included; 0: all */
    bool causal;          /* with as many keys as steps */
} op_attention;

static inline size_t attention_key_heads(size_t heads, size_t group)
{
    return group > 1 ? heads / group : heads;
}

/* dq, dk and dv have rows like q, k and v. With `accumulate`, q, k and v must be side by side in one matrix, and
 * their gradients too. Otherwise each of dq, dk and dv may be none; `add_dq` and `add_dkv` say which of them are added to
 * what is there. */
typedef struct op_attention_backward {
    tensor_ref q, k, v, out, sums, dout, dq, dk, dv, positions, workspace;
    size_t batch, heads, steps, size, row, out_row, keys, key_row, group, window;
    bool causal, accumulate, add_dq, add_dkv; /* `accumulate` is for groups of one head */
} op_attention_backward;

/* What the processor's kernels take in bf16 as it is: heads of so many columns, and of so many values in whole vectors; no windows, no
 * gradients that are added to what is there, no heads that share keys. Everything else is converted to fp32. */
enum { ATTENTION_HALF_SIZE = 128, ATTENTION_HALF_VALUES = 65536 };
static inline bool attention_takes_halves(size_t steps, size_t size, size_t window)
{
    return size <= ATTENTION_HALF_SIZE && (window == 0 || window >= steps) &&
           steps <= ATTENTION_HALF_VALUES / ((size + 15) / 16 * 16);
}

/* The same for `rows` steps of one sequence whose keys and values are in a cache of `keys` rows: row r sees those from the first to
 * the one at its position, of int32, and with `window` only the last of them. */
typedef struct op_attention_cached {
    tensor_ref q, k, v, out, positions;
    size_t rows, heads, size, row, out_row, keys, key_row, group, window;
} op_attention_cached;

/* Row places[r] of y = row r of x, for `rows` rows whose places, of int32, are below `most`. Rows of x are x_row values apart. */
typedef struct op_put_rows {
    tensor_ref x, places, y;
    size_t rows, columns, x_row, most;
} op_put_rows;

/* y (+)= x with every head turned by its position: values i and i + size / 2 of a head are a point in the plane,
 * turned by the angle position * rotary_frequency(i), a product in fp32, and multiplied by `scale`. A row has `heads`
 * heads of `size` values. Row r has the position that `positions`, of int32, says; where there are none, r % steps.
 * `backward` turns by the negative angle: that is the gradient. y may overlap x. */
typedef struct op_rotate {
    tensor_ref x, y, positions;
    size_t rows, steps, heads, size;
    rotary_angles angles;
    double scale;
    bool backward, accumulate;
} op_rotate;

/* ---- recurrent cells ---- */

/* One step of an LSTM for `batch` sequences. `gates` holds what comes from inputs and states, `size` values each for the
 * gates in, forget, value and out, and gets their activations. `before` holds the cells of the step before; none: they are
 * 0. Rows of gates are gates_row values apart, those of before, cells and hidden state_row values. */
typedef struct op_lstm_cell {
    tensor_ref gates, before, cells, hidden;
    size_t batch, size, gates_row, state_row;
} op_lstm_cell;

/* `dout` has rows like cells. `dhidden` (none: 0) and `dcells` are dense; dcells holds the gradient from the step behind,
 * unless this is the last, and gets that of the step before. */
typedef struct op_lstm_cell_backward {
    tensor_ref gates, before, cells, dout, dhidden, dcells, dgates;
    size_t batch, size, gates_row, state_row;
    bool is_last;
} op_lstm_cell_backward;

/* The same for a GRU, with the gates reset, keep and value. `product` has the state's share in them, dense; its part for
 * the value is copied to `candidate`. `before` holds the states of the step before. */
typedef struct op_gru_cell {
    tensor_ref gates, product, before, candidate, hidden;
    size_t batch, size, gates_row, state_row;
} op_gru_cell;

/* `dhidden` is dense. It holds the gradient from the step behind, unless this is the last, and gets the cell's own share in
 * that of the step before. Rows of dgates and dproduct are gates_row values apart. */
typedef struct op_gru_cell_backward {
    tensor_ref gates, candidate, before, dout, dhidden, dgates, dproduct;
    size_t batch, size, gates_row, state_row;
    bool is_last;
} op_gru_cell_backward;

/* ---- convolution and pooling ---- */

/* A window that slides over images of channels x height x width. Padding is above and to the left; below and to the
 * right there is as much as out_h and out_w need. The last three are for convolutions, where they are at least 1: the
 * channels are in `groups`, and outputs of a group read inputs of that group only; taps are `dilation` places apart. */
typedef struct operation_window {
    size_t batch;
    size_t in_channels, in_h, in_w;
    size_t out_channels, out_h, out_w;
    size_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
    size_t groups, dilation_h, dilation_w;
} operation_window;

/* The bits for the number of a tap, 1, 2, 4 or 8, where a window of a pooling has so few; 0: positions take an int32. Every window
 * must have a point of the image. */
static inline unsigned operation_chosen_bits(const operation_window *w)
{
    const size_t most_h = 256, most_w = 65536; /* of a window, and of a row of outputs */
    if (w->kernel_h > most_h || w->kernel_w > most_h || w->kernel_w > w->in_w || w->out_w > most_w)
        return 0;
    const size_t taps = w->kernel_h * w->kernel_w;
    return taps <= 2 ? 1 : taps <= 4 ? 2 : taps <= 16 ? 4 : taps <= 256 ? 8 : 0;
}

/* The bytes of a row of outputs in these bits. */
static inline size_t operation_chosen_row(const operation_window *w)
{
    return (w->out_w * operation_chosen_bits(w) + 7) / 8;
}

/* Weights are out x (in / groups) x kernel_h x kernel_w. `bias` may be none. */
typedef struct op_convolve {
    tensor_ref x, weight, bias, y, workspace;
    operation_window window;
} op_convolve;

/* dbias may be none. */
typedef struct op_convolve_backward_weight {
    tensor_ref x, dy, dweight, dbias, workspace;
    operation_window window;
    bool accumulate;
} op_convolve_backward_weight;

typedef struct op_convolve_backward_input {
    tensor_ref weight, dy, dx, workspace;
    operation_window window;
    bool accumulate;
} op_convolve_backward_input;

/* `chosen` gets the position of the largest value, the first of equals; NaN counts as the largest. y may be none if only the
 * positions are wanted. in_channels == out_channels. Positions are int32, in the image and -1 for none; or, in uint8, numbers of the
 * window's taps in operation_chosen_bits() bits each, the first in the lowest bits, and every row of outputs begins with a byte. */
typedef struct op_pool_max {
    tensor_ref x, y, chosen;
    operation_window window;
} op_pool_max;

typedef struct op_pool_max_backward {
    tensor_ref chosen, dy, dx;
    operation_window window;
    bool accumulate;
} op_pool_max_backward;

/* The mean of a window. The divisor is the number of places inside the image, which is `counted_h` x `counted_w` with the
 * padding that counts. 0 x 0: no padding counts. */
typedef struct op_pool_average {
    tensor_ref x, y;
    operation_window window;
    size_t counted_h, counted_w;
} op_pool_average;

typedef struct op_pool_average_backward {
    tensor_ref dy, dx;
    operation_window window;
    size_t counted_h, counted_w;
    bool accumulate;
} op_pool_average_backward;

/* ---- losses ---- */

/* Adds the sum over all rows to the step block's loss_sum, in double and fixed order. The gradient is multiplied by
 * `factor` and may overlap the logits. Without a gradient, only the loss is computed. A negative label adds nothing.
 * `smoothing` takes that share from the label and gives it to all columns alike. `weights`, one for each column or NULL,
 * multiply what belongs to a column. They are in the host's memory and must live as long as the recording. With `by_labels`, the
 * factor is divided by the `labels` of the step block. */
typedef struct op_cross_entropy {
    tensor_ref logits, labels, gradient, step;
    size_t rows, columns;
    double factor, smoothing;
    const double *weights;
    bool by_labels;
} op_cross_entropy;

/* The same for squared differences. */
typedef struct op_squared_error {
    tensor_ref x, target, gradient, step;
    size_t count;
    double factor;
    bool accumulate;
} op_squared_error;

typedef enum pointwise_loss_kind {
    LOSS_LOGISTIC, /* cross entropy of x as a logit; the target is a chance. `parameter` multiplies the target's side */
    LOSS_HUBER,    /* half the squared difference; beyond `parameter` in proportion */
} pointwise_loss_kind;

/* The same for other losses of values. */
typedef struct op_pointwise_loss {
    tensor_ref x, target, gradient, step;
    size_t count;
    pointwise_loss_kind kind;
    double parameter, factor;
    bool accumulate;
} op_pointwise_loss;

/* loss += loss_sum / divisor; loss_sum = 0. With `by_labels`, the divisor is multiplied by the `labels` of the step
 * block. Record it once for every loss, after the operations above. */
typedef struct op_finish_loss {
    tensor_ref step;
    double divisor;
    bool by_labels;
} op_finish_loss;

/* correct += the rows whose largest logit, the first of equals, is the label's. */
typedef struct op_count_correct {
    tensor_ref logits, labels, step;
    size_t rows, columns;
} op_count_correct;

/* ---- optimizers ---- */

/* squares += the sums of squares of x, in double: each block of OPERATION_SQUARES_BLOCK values has a sum, and they are added in
 * order. So whoever has some blocks can make their sums, and someone else can add them. */
typedef struct op_add_squares {
    tensor_ref x, step;
    size_t count;
} op_add_squares;
#define OPERATION_SQUARES_BLOCK 4096

/* These sums, without adding them: `sums` are the bytes of one double for each block of x. */
typedef struct op_block_squares {
    tensor_ref x, sums;
    size_t count;
} op_block_squares;

/* Where x has a value that is not finite, and nothing was broken before: broken = 1 + number. */
typedef struct op_check_finite {
    tensor_ref x, step;
    size_t count;
    uint64_t number;
} op_check_finite;

/* scale = clip_norm / (sqrt(squares) + 1e-6), at most 1. */
typedef struct op_clip {
    tensor_ref step;
    double clip_norm;
} op_clip;

/* Optimizers change nothing where the step is not finite. They leave blocks of values alone in which a gradient is not
 * finite, for sgd also times the learning rate, and note that: broken = 1 + number, where nothing was broken before.
 *
 * Moments have the type of the weights, or bf16, or 8 bits (base/moment_codes.h): int8 for means, uint8 for means of squares,
 * with a scale for every MOMENT_BLOCK values. The scales are none for other types. What is rounded is rounded with numbers of
 * the stream (seed, MOMENT_STREAM + number, step): value i takes the i-th number, the lower half for the first moment and the
 * upper half for the second.
 *
 * Weights in bf16 are rounded in the same way, with the lower halves of the stream (seed, WEIGHT_STREAM + number, step). Their
 * gradients are in fp32.
 *
 * The tensors may be a part of a parameter. `offset` is the number of its first value in the parameter, a multiple of
 * OPERATION_SQUARES_BLOCK: it decides which random numbers are drawn. */

/* One step of stochastic gradient descent. `velocity` is none without momentum. */
typedef struct op_sgd {
    tensor_ref gradient, weight, velocity, velocity_scales, step;
    size_t count;
    double momentum, decay;
    bool nesterov;
    uint64_t number, offset;
} op_sgd;

/* One step of adam. `decoupled` is adamw: weights shrink by rate * decay; else decay * weight joins the gradient. */
typedef struct op_adam {
    tensor_ref gradient, weight, first, second, first_scales, second_scales, step;
    size_t count;
    double beta1, beta2, epsilon, decay;
    bool decoupled;
    uint64_t number, offset;
} op_adam;

/* One step of lion: weights shrink by rate * decay, and move by the rate against the sign of beta1 * mean + (1 - beta1) *
 * gradient. Then mean = beta2 * mean + (1 - beta2) * gradient. */
typedef struct op_lion {
    tensor_ref gradient, weight, mean, mean_scales, step;
    size_t count;
    double beta1, beta2, decay;
    uint64_t number, offset;
} op_lion;

/* One step of adafactor, as PyTorch has it, for a matrix. `row_squares` and `column_squares` are means of the gradient's squares
 * over rows and columns. With column_squares none it is a vector: rows is 1, and row_squares has a square for each value.
 * The step block has the share of the new squares in correction1, and the rate relative to the weights in correction2. A
 * gradient that is not finite leaves the whole parameter alone. */
typedef struct op_adafactor {
    tensor_ref gradient, weight, row_squares, column_squares, step;
    size_t rows, columns;
    double least_scale; /* of the weights: their root mean square counts as at least this */
    double threshold;   /* the largest root mean square of an update before it is scaled */
    double decay;
    uint64_t number;
} op_adafactor;
#define OPERATION_ADAFACTOR_EPSILON 0x1p-23

/* ---- functions of the user ---- */

/* Calls a function of a custom layer. `of` has the element type of the call's tensors. The kernel sets the number of
 * threads. */
typedef struct op_custom {
    tensor_ref of;
    void (*function)(const remat_custom_call *call);
    remat_custom_call call;
} op_custom;

/* ---- the list ---- */

/* Every operation with the number of tensors that its struct begins with. */
#define OPERATION_LIST(X)          \
    X(gemm, 6)                     \
    X(activate, 2)                 \
    X(activate_backward, 4)        \
    X(rectify, 3)                  \
    X(rectify_backward, 3)         \
    X(add, 3)                      \
    X(multiply, 3)                 \
    X(scale, 1)                    \
    X(accumulate, 2)               \
    X(copy, 2)                     \
    X(convert, 2)                  \
    X(fill, 1)                     \
    X(dropout, 3)                  \
    X(softmax, 2)                  \
    X(softmax_backward, 3)         \
    X(add_to_rows, 3)              \
    X(copy_rows, 2)                \
    X(column_sums, 2)              \
    X(add_to_channels, 2)          \
    X(channel_sums, 2)             \
    X(gather, 3)                   \
    X(gather_backward, 3)          \
    X(normalize, 6)                \
    X(normalize_backward, 9)       \
    X(batch_statistics, 5)         \
    X(batch_scales, 2)             \
    X(batch_normalize, 6)          \
    X(batch_normalize_backward, 8) \
    X(group_normalize, 6)          \
    X(group_normalize_backward, 9) \
    X(attention, 6)                \
    X(attention_backward, 11)      \
    X(attention_cached, 5)         \
    X(put_rows, 3)                 \
    X(rotate, 3)                   \
    X(lstm_cell, 4)                \
    X(lstm_cell_backward, 7)       \
    X(gru_cell, 5)                 \
    X(gru_cell_backward, 7)        \
    X(convolve, 5)                 \
    X(convolve_backward_weight, 5) \
    X(convolve_backward_input, 4)  \
    X(pool_max, 3)                 \
    X(pool_max_backward, 3)        \
    X(pool_average, 2)             \
    X(pool_average_backward, 2)    \
    X(cross_entropy, 4)            \
    X(squared_error, 4)            \
    X(pointwise_loss, 4)           \
    X(finish_loss, 1)              \
    X(count_correct, 3)            \
    X(add_squares, 2)              \
    X(block_squares, 2)            \
    X(check_finite, 2)             \
    X(clip, 1)                     \
    X(sgd, 5)                      \
    X(adam, 7)                     \
    X(lion, 5)                     \
    X(adafactor, 5)                \
    X(custom, 1)

typedef enum operation {
#define X(name, tensors) OP_##name,
    OPERATION_LIST(X)
#undef X
        OPERATION_COUNT
} operation;

enum { OPERATION_MAX_TENSORS = 11 };

/* Properties of an operation that generic code uses. */
typedef struct operation_traits {
    const char *name;
    uint32_t bytes;   /* of its struct */
    uint32_t tensors; /* that it begins with */
} operation_traits;
extern const operation_traits operation_table[OPERATION_COUNT];

/* Writes the types of an operation's tensors as the signature of a kernel: one letter each, '-' for an absent
 * tensor. */
void operation_types(operation op, const void *args, char types[OPERATION_MAX_TENSORS + 1]);

#endif
