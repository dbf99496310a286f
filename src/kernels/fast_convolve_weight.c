/* The gradient of a convolution's weights: for each output channel and tap, the sum over all places of the outputs'
 * gradient times the shifted source. Vectors hold partial sums over places. */
#include "kernels/fast_convolve_flat.h"
#include "kernels/fast_math.h"
#include "kernels/reference.h"
#include "kernels/window.h"

#include <omp.h>

#if FAST_LANES == 16
#define TILE_TAPS 6 /* of 4 channels each: 24 of 32 registers */
#else
#define TILE_TAPS 3 /* 12 of 16 */
#endif
#define TILE_ROWS  4
#define BLOCK_ROWS 32 /* output channels of a piece of work */

/* What is multiplied, and where its sums are added. */
typedef struct flat_sums {
    const float *dy; /* rows of `length` values, 0 where there is no output */
    size_t length;
    const float *planes;
    const int32_t *offsets; /* of taps, in the planes */
    size_t taps;
    const int32_t *places; /* of vectors that cover the outputs */
    size_t vectors;
    float *to; /* a row for each of dy */
    size_t to_row;
} flat_sums;

/* to[r][t] += the sum over the covered p of dy[r][p] * planes[offsets[t] + p], for some taps from `first` on. */
FAST_INLINE void tile(size_t rows, size_t taps, const flat_sums *f, size_t first)
{
    fast_vector sum[TILE_ROWS][TILE_TAPS] = {0};
    const float *from[TILE_TAPS], *dy = f->dy;
    const int32_t *places = f->places;
    size_t length = f->length, vectors = f->vectors;
#pragma GCC unroll 6
    for (size_t t = 0; t < taps; t++)
        from[t] = f->planes + f->offsets[first + t];
    for (size_t v = 0; v < vectors; v++) {
        size_t p = (size_t)places[v];
        fast_vector d[TILE_ROWS];
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            d[r] = fast_load(dy + r * length + p);
#pragma GCC unroll 6
        for (size_t t = 0; t < taps; t++) {
            fast_vector x = fast_load(from[t] + p);
#pragma GCC unroll 4
            for (size_t r = 0; r < rows; r++)
                sum[r][t] += d[r] * x;
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (size_t t = 0; t < taps; t++)
            f->to[r * f->to_row + first + t] += fast_sum_lanes(sum[r][t]);
}

/* All taps of a few output channels. */
FAST_INLINE void add_rows(size_t rows, const flat_sums *f)
{
    size_t t = 0;
    for (; t + TILE_TAPS <= f->taps; t += TILE_TAPS)
        tile(rows, TILE_TAPS, f, t);
#if TILE_TAPS > 3
    for (; t + 3 <= f->taps; t += 3)
        tile(rows, 3, f, t);
#endif
    for (; t < f->taps; t++)
        tile(rows, 1, f, t);
}

static __attribute__((noinline)) void add_4(const flat_sums *sums)
{
    add_rows(4, sums);
}

static __attribute__((noinline)) void add_1(const flat_sums *sums)
{
    add_rows(1, sums);
}

static float row_sum(const float *row, size_t length)
{
    fast_vector sum = {0};
    for (size_t p = 0; p < length; p += FAST_LANES)
        sum += fast_load(row + p);
    return fast_sum_lanes(sum);
}

/* The gradients of output channels first .. first + rows - 1 over some images. */
typedef struct weight_block {
    const kernel_window *window;
    const float *x, *dy; /* of the first of the images */
    size_t images;
    size_t first, rows;     /* output channels */
    float *dweight, *dbias; /* of the first of them */
} weight_block;

static flat_shape window_shape(const kernel_window *w)
{
    return (flat_shape){.high = {w->in_h, -(ptrdiff_t)w->pad_h, w->stride_h, w->kernel_h, w->out_h, false, 0},
                        .wide = {w->in_w, -(ptrdiff_t)w->pad_w, w->stride_w, w->kernel_w, w->out_w, false, 0},
                        .channels = w->in_channels};
}

static void add_piece(const weight_block *block, const flat_piece *piece, size_t channels, flat_scratch scratch)
{
    const kernel_window *w = block->window;
    size_t length = piece->shape.length, area = w->out_h * w->out_w, taps = w->kernel_h * w->kernel_w;
    for (size_t r = 0; r < block->rows; r++) {
        float *row = scratch.rows + r * length;
        FAST(flat_spread)(piece, block->dy + (block->first + r) * area, w->out_channels * area, w->out_w, row);
        block->dbias[r] += row_sum(row, length);
    }
    FAST(flat_offsets)(&piece->shape, channels, scratch.offsets);
    FAST(flat_places)(&piece->shape, scratch.places);
    for (size_t c = 0; c < w->in_channels; c += channels) {
        size_t count = w->in_channels - c < channels ? w->in_channels - c : channels;
        FAST(flat_load)(piece, block->x, c, count, scratch.planes);
        flat_sums sums = {.dy = scratch.rows,
                          .length = length,
                          .planes = scratch.planes,
                          .offsets = scratch.offsets,
                          .taps = count * taps,
                          .places = scratch.places,
                          .vectors = piece->shape.vectors,
                          .to = block->dweight + c * taps,
                          .to_row = w->in_channels * taps};
        for (size_t r = 0, rows; r < block->rows; r += rows) {
            rows = block->rows - r >= 4 ? 4 : 1;
            (rows == 4 ? add_4 : add_1)(&sums);
            sums.dy += rows * length;
            sums.to += rows * sums.to_row;
        }
    }
}

static void add_block(const weight_block *block, flat_scratch scratch)
{
    const kernel_window *w = block->window;
    flat_shape shape = window_shape(w);
    flat_cut cut;
    FAST(flat_cut_make)(&shape, block->images, block->images, &cut);
    memset(block->dweight, 0, block->rows * w->in_channels * w->kernel_h * w->kernel_w * sizeof(float));
    memset(block->dbias, 0, block->rows * sizeof(float));
    size_t pieces = FAST(flat_cut_count)(&shape, block->images, &cut);
    for (size_t i = 0; i < pieces; i++) {
        flat_piece piece = FAST(flat_cut_piece)(&shape, block->images, &cut, i);
        add_piece(block, &piece, cut.channels, scratch);
    }
}

/* to (+)= the groups' partial sums, which lie `distance` apart, in their order. */
static void add_groups(const kernel_run *run, size_t count, size_t groups, size_t distance, const float *partial,
                       float *to, bool accumulate)
{
    int threads = fast_threads(run, count * groups);
#pragma omp parallel for num_threads(threads)
    for (size_t begin = 0; begin < count; begin += 1024) {
        size_t end = begin + 1024 < count ? begin + 1024 : count;
        for (size_t g = 0; g < groups; g++) {
            const float *from = partial + g * distance;
            if (g == 0 && !accumulate)
                memcpy(to + begin, from + begin, (end - begin) * sizeof *to);
            else
                for (size_t i = begin; i < end; i++)
                    to[i] += from[i];
        }
    }
}

void FAST(convolve_backward_weight)(const kernel_run *run, const kernel_window *w, const float *x, const float *dy,
                                    float *dweight, float *dbias, bool accumulate, float *workspace)
{
    size_t groups = window_groups(w), weights = window_weights(w), partial = weights + w->out_channels;
    size_t in = w->in_channels * w->in_h * w->in_w, out = w->out_channels * w->out_h * w->out_w;
    size_t row = w->out_channels ? weights / w->out_channels : 0;
    flat_shape shape = window_shape(w);
    flat_cut cut;
    if (w->batch == 0 || in == 0 || out == 0 || row == 0 || !FAST(flat_cut_make)(&shape, w->batch, w->batch, &cut)) {
        reference_convolve_backward_weight(run, w, x, dy, dweight, dbias, accumulate, workspace);
        return;
    }
    size_t rows = FLAT_ROWS / cut.most_length < BLOCK_ROWS ? FLAT_ROWS / cut.most_length : BLOCK_ROWS;
    size_t blocks = (w->out_channels + rows - 1) / rows;
    int threads = fast_threads(run, w->batch * out * row / 16);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t i = 0; i < groups * blocks; i++) {
        size_t group = i / blocks, first = i % blocks * rows;
        size_t begin = group * w->batch / groups, end = (group + 1) * w->batch / groups;
        weight_block block = {
            .window = w,
            .x = x + begin * in,
            .dy = dy + begin * out,
            .images = end - begin,
            .first = first,
            .rows = w->out_channels - first < rows ? w->out_channels - first : rows,
            .dweight = workspace + group * partial + first * row,
            .dbias = workspace + group * partial + weights + first,
        };
        add_block(&block, flat_scratch_of(run, omp_get_thread_num()));
    }
    add_groups(run, weights, groups, partial, workspace, dweight, accumulate);
    if (dbias)
        add_groups(run, w->out_channels, groups, partial, workspace + weights, dbias, accumulate);
}
