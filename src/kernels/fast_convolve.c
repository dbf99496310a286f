/* Convolution and its gradient to the input: one or several products over flat images. */
#include "kernels/fast_convolve_flat.h"
#include "kernels/fast_math.h"
#include "kernels/reference.h"
#include "kernels/window.h"

#include <omp.h>

#if FAST_LANES == 16
#define TILE_ROWS 8 /* of 3 vectors each: 24 of 32 registers */
#else
#define TILE_ROWS 4 /* 12 of 16 */
#endif

/* What the rows of outputs of a piece are made from. */
typedef struct flat_factors {
    const float *weight; /* of all rows for each tap in turn */
    const float *bias;   /* of each row, or NULL */
    size_t count;        /* of taps, each with its offset in the planes */
    const int32_t *offsets;
    const float *planes;
    const int32_t *places; /* where vectors of outputs are wanted */
    size_t vectors;
    size_t length; /* of a row of outputs */
} flat_factors;

/* `rows` x `vectors` outputs at once: out[r] = bias[r] + the sum over k of weight[k][r] * the vector at offset k. */
FAST_INLINE void tile(size_t rows, size_t vectors, const flat_factors *f, const int32_t *places, float *out)
{
    fast_vector sum[TILE_ROWS][3];
    size_t at[3], count = f->count;
    const float *weight = f->weight, *planes = f->planes;
    const int32_t *offsets = f->offsets;
#pragma GCC unroll 3
    for (size_t v = 0; v < vectors; v++)
        at[v] = (size_t)places[v];
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++)
            sum[r][v] = fast_repeat(f->bias ? f->bias[r] : 0);
    for (size_t k = 0; k < count; k++) {
        const float *from = planes + offsets[k];
        fast_vector x[3];
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++)
            x[v] = fast_load(from + at[v]);
#pragma GCC unroll 8
        for (size_t r = 0; r < rows; r++) {
            fast_vector w = fast_repeat(weight[k * rows + r]);
#pragma GCC unroll 3
            for (size_t v = 0; v < vectors; v++)
                sum[r][v] += w * x[v];
        }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (size_t v = 0; v < vectors; v++)
            fast_store(out + r * f->length + at[v], sum[r][v]);
}

FAST_INLINE void fill_rows(size_t rows, const flat_factors *f, float *out)
{
    size_t v = 0;
    for (; v + 3 <= f->vectors; v += 3)
        tile(rows, 3, f, f->places + v, out);
    if (v + 2 <= f->vectors)
        tile(rows, 2, f, f->places + v, out);
    else if (v < f->vectors)
        tile(rows, 1, f, f->places + v, out);
}

/* Rows of outputs for as many output channels. */
typedef void fill_function(const flat_factors *factors, float *out);
#define FILL(rows)                                                                             \
    static __attribute__((noinline)) void fill_##rows(const flat_factors *factors, float *out) \
    {                                                                                          \
        fill_rows(rows, factors, out);                                                         \
    }
FILL(1)
FILL(2)
FILL(4)
#if TILE_ROWS == 8
FILL(8)
#endif

/* The largest of the functions above for `left` rows. */
static fill_function *fill_for(size_t left, size_t *rows)
{
#if TILE_ROWS == 8
    if (left >= 8)
        return *rows = 8, fill_8;
#endif
    if (left >= 4)
        return *rows = 4, fill_4;
    if (left >= 2)
        return *rows = 2, fill_2;
    return *rows = 1, fill_1;
}

/* A convolution as the product of weights, outputs x (channels, taps), and the source. Outputs stand together in
 * panels, as many as fill_for() says; in a panel, the weights of all its outputs for the first tap come first. */
typedef struct flat_product {
    flat_shape shape;
    const float *source, *weight, *bias;
    size_t outputs;
    flat_target target; /* of output channel 0 */
    size_t channel;     /* from one output channel to the next */
} flat_product;

static void fill_piece(const flat_product *product, const flat_cut *cut, const flat_piece *piece, flat_scratch scratch)
{
    const flat_shape *shape = &piece->shape;
    size_t taps = shape->high.taps * shape->wide.taps, weight_row = shape->channels * taps;
    FAST(flat_offsets)(shape, cut->channels, scratch.offsets);
    FAST(flat_places)(shape, scratch.places);
    for (size_t c = 0; c < shape->channels; c += cut->channels) {
        size_t count = shape->channels - c < cut->channels ? shape->channels - c : cut->channels, rows;
        FAST(flat_load)(piece, product->source, c, count, scratch.planes);
        for (size_t m = 0; m < product->outputs; m += rows) {
            fill_function *fill = fill_for(product->outputs - m, &rows);
            flat_factors factors = {.weight = product->weight + m * weight_row + c * taps * rows,
                                    .bias = product->bias && c == 0 ? product->bias + m : NULL,
                                    .count = count * taps,
                                    .offsets = scratch.offsets,
                                    .planes = scratch.planes,
                                    .places = scratch.places,
                                    .vectors = shape->vectors,
                                    .length = shape->length};
            fill(&factors, scratch.rows);
            for (size_t r = 0; r < rows; r++) {
                flat_target target = product->target;
                target.to += (m + r) * product->channel;
                target.add |= c > 0;
                FAST(flat_store)(piece, scratch.rows + r * shape->length, &target);
            }
        }
    }
}

/* Where weights are taken from: that of output m, channel c and tap (y, x) lies at a sum of steps from the first. */
typedef struct weight_steps {
    const float *first;
    ptrdiff_t output, channel, high, wide;
} weight_steps;

static void pack_weights(const kernel_run *run, const flat_product *product, weight_steps from, float *packed)
{
    const flat_shape *shape = &product->shape;
    size_t row = shape->channels * shape->high.taps * shape->wide.taps;
    int threads = fast_threads(run, product->outputs * row);
#pragma omp parallel for num_threads(threads)
    for (size_t begin = 0; begin < product->outputs; begin += TILE_ROWS)
        for (size_t m = begin, rows; m < product->outputs && m < begin + TILE_ROWS; m += rows) {
            fill_for(product->outputs - m, &rows);
            float *to = packed + m * row;
            const float *panel = from.first + (ptrdiff_t)m * from.output;
            for (size_t c = 0; c < shape->channels; c++)
                for (size_t y = 0; y < shape->high.taps; y++)
                    for (size_t x = 0; x < shape->wide.taps; x++)
                        for (size_t r = 0; r < rows; r++)
                            *to++ = panel[(ptrdiff_t)r * from.output + (ptrdiff_t)c * from.channel +
                                          (ptrdiff_t)y * from.high + (ptrdiff_t)x * from.wide];
        }
}

/* Images of a piece: several, if they are small, but enough pieces for many threads. */
static size_t images_at_once(size_t batch)
{
    return batch / 16 ? batch / 16 : 1;
}

static bool product_fits(flat_product *product, size_t batch)
{
    flat_cut cut;
    return FAST(flat_cut_make)(&product->shape, batch, images_at_once(batch), &cut);
}

static void product_run(const kernel_run *run, flat_product *product, size_t batch)
{
    flat_shape *shape = &product->shape;
    flat_cut cut;
    FAST(flat_cut_make)(shape, batch, images_at_once(batch), &cut);
    size_t pieces = FAST(flat_cut_count)(shape, batch, &cut);
    size_t taps = shape->channels * shape->high.taps * shape->wide.taps;
    size_t values = batch * product->outputs * shape->high.outputs * shape->wide.outputs;
    int threads = fast_threads(run, values * taps / 16); /* a value of other kernels takes about as long as 16 taps */
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t i = 0; i < pieces; i++) {
        flat_piece piece = FAST(flat_cut_piece)(shape, batch, &cut, i);
        fill_piece(product, &cut, &piece, flat_scratch_of(run, omp_get_thread_num()));
    }
}

void FAST(convolve)(const kernel_run *run, const kernel_window *w, const float *x, const float *weight,
                    const float *bias, float *y, float *workspace)
{
    size_t area = w->out_h * w->out_w;
    if (w->batch == 0 || w->out_channels == 0 || area == 0)
        return;
    flat_product product = {
        .shape = {.high = {w->in_h, -(ptrdiff_t)w->pad_h, w->stride_h, w->kernel_h, w->out_h, false, 0},
                  .wide = {w->in_w, -(ptrdiff_t)w->pad_w, w->stride_w, w->kernel_w, w->out_w, false, 0},
                  .channels = w->in_channels},
        .source = x,
        .weight = workspace,
        .bias = bias,
        .outputs = w->out_channels,
        .target = {y, w->out_channels * area, w->out_w, 1, false},
        .channel = area,
    };
    if (window_weights(w) == 0 || !product_fits(&product, w->batch)) {
        reference_convolve(run, w, x, weight, bias, y, workspace);
        return;
    }
    ptrdiff_t kernel = (ptrdiff_t)(w->kernel_h * w->kernel_w);
    weight_steps from = {weight, (ptrdiff_t)w->in_channels * kernel, kernel, (ptrdiff_t)w->kernel_w, 1};
    pack_weights(run, &product, from, workspace);
    product_run(run, &product, w->batch);
}

/* One phase of the input along one axis: the places phase, phase + stride, ... of the padded input. Only the taps
 * phase, phase + stride, ... reach them; backwards, they run over neighbours in the output. `begin` is the first such
 * place inside the input. */
static flat_axis phase_axis(size_t phase, size_t in, size_t out, size_t kernel, size_t stride, size_t pad,
                            size_t *begin)
{
    size_t skipped = phase < pad ? (pad - phase + stride - 1) / stride : 0;
    *begin = phase + skipped * stride - pad;
    size_t taps = phase < kernel ? (kernel - phase + stride - 1) / stride : 0;
    size_t outputs = *begin < in ? (in - *begin + stride - 1) / stride : 0;
    return (flat_axis){out, (ptrdiff_t)skipped - ((ptrdiff_t)taps - 1), 1, taps, outputs, false, 0};
}

/* The weights of a phase: channels of the input are the outputs now, and the taps run backwards. */
static weight_steps phase_weights(const kernel_window *w, const float *weight, size_t phase_h, size_t phase_w,
                                  size_t taps_h, size_t taps_w)
{
    size_t last_h = phase_h + (taps_h - 1) * w->stride_h, last_w = phase_w + (taps_w - 1) * w->stride_w;
    ptrdiff_t kernel = (ptrdiff_t)(w->kernel_h * w->kernel_w);
    return (weight_steps){weight + last_h * w->kernel_w + last_w, kernel, (ptrdiff_t)w->in_channels * kernel,
                          -(ptrdiff_t)(w->stride_h * w->kernel_w), -(ptrdiff_t)w->stride_w};
}

void FAST(convolve_backward_input)(const kernel_run *run, const kernel_window *w, const float *weight, const float *dy,
                                   float *dx, bool accumulate, float *workspace)
{
    size_t area = w->in_h * w->in_w, values = w->batch * w->in_channels * area;
    if (values == 0)
        return;
    /* A phase is no larger than the whole kernel at stride 1: if that fits, all do. */
    flat_product product = {
        .shape = {.high = {w->out_h, 0, 1, w->kernel_h, w->in_h, false, 0},
                  .wide = {w->out_w, 0, 1, w->kernel_w, w->in_w, false, 0},
                  .channels = w->out_channels},
        .source = dy,
        .weight = workspace,
        .outputs = w->in_channels,
        .channel = area,
    };
    if (window_weights(w) == 0 || !product_fits(&product, w->batch)) {
        reference_convolve_backward_input(run, w, weight, dy, dx, accumulate, workspace);
        return;
    }
    if (!accumulate && (w->kernel_h < w->stride_h || w->kernel_w < w->stride_w))
        memset(dx, 0, values * sizeof *dx); /* no tap reaches some of it */
    for (size_t phase_h = 0; phase_h < w->stride_h && phase_h < w->kernel_h; phase_h++)
        for (size_t phase_w = 0; phase_w < w->stride_w && phase_w < w->kernel_w; phase_w++) {
            size_t top, left;
            flat_axis *high = &product.shape.high, *wide = &product.shape.wide;
            *high = phase_axis(phase_h, w->in_h, w->out_h, w->kernel_h, w->stride_h, w->pad_h, &top);
            *wide = phase_axis(phase_w, w->in_w, w->out_w, w->kernel_w, w->stride_w, w->pad_w, &left);
            if (high->outputs == 0 || wide->outputs == 0)
                continue;
            pack_weights(run, &product, phase_weights(w, weight, phase_h, phase_w, high->taps, wide->taps), workspace);
            product.target = (flat_target){dx + top * w->in_w + left, w->in_channels * area, w->stride_h * w->in_w,
                                           w->stride_w, accumulate};
            product_run(run, &product, w->batch);
        }
}
