/* The gradient of the weights of a convolution: for each tap and output channel, the sum over all places of the shifted
 * source times the gradient of the output. Vectors hold output channels, so that no vector is cut at the end of a row or of
 * an image. The gradient of the output is transposed for this beforehand, and the sums, a row for each tap, at the end.
 * Groups with few output channels would leave most lanes empty: there, vectors hold places. */
#include "backend/cpu/fast_convolve_flat.h"
#include "backend/cpu/reference.h"
#include "backend/cpu/window.h"

/* About how many outputs a piece has: their gradients for the channels of a tile stay in the near caches while the taps
 * are computed. */
#define PIECE_LENGTH 512

/* The gradients of output channels first .. first + count - 1 over some images. All are of one group. */
typedef struct weight_block {
    const operation_window *window;
    const float *x, *dy; /* of the first of the images; x is the first channel of the group */
    size_t images;
    size_t first, count;    /* output channels */
    float *dweight, *dbias; /* of the first of them: rows for each tap, and one row */
} weight_block;

/* Transposes the gradients of a piece's outputs for `count` channels: a row of whole vectors for each output. */
static void transpose_outputs(const weight_block *block, const flat_piece *piece, size_t first, size_t count, float *to)
{
    const operation_window *w = block->window;
    size_t area = w->out_h * w->out_w, rows = piece->shape.high.outputs, columns = piece->shape.wide.outputs;
    if (columns == w->out_w) {
        columns *= rows;
        rows = 1;
    }
    for (size_t i = 0; i < piece->shape.images; i++)
        for (size_t y = 0; y < rows; y++, to += columns * round_up(count, FAST_LANES)) {
            const float *from = block->dy + ((piece->image + i) * w->out_channels + first) * area +
                                (piece->row + y) * w->out_w + piece->column;
            pack_panel(&(pack_source){from, area, columns, count, true, REMAT_FP32, 0}, to);
        }
}

static void add_piece(const weight_block *block, const flat_piece *piece, size_t channels, flat_scratch scratch)
{
    const operation_window *w = block->window;
    size_t outputs = piece->shape.images * piece->shape.high.outputs * piece->shape.wide.outputs;
    size_t taps = w->kernel_h * w->kernel_w, all = round_up(block->count, FAST_LANES) / FAST_LANES;
    FAST(flat_offsets)(&piece->shape, channels, scratch.offsets);
    FAST(flat_outputs)(&piece->shape, scratch.places);
    for (size_t c = 0; c < piece->shape.channels; c += channels) {
        size_t count = smaller(piece->shape.channels - c, channels) * taps;
        FAST(flat_load)(piece, block->x, c, count / taps, scratch.planes);
        for (size_t v = 0, vectors; v < all; v += vectors) {
            size_t at = v * FAST_LANES;
            vectors = panel_vectors(all - v);
            flat_factors factors = {.planes = scratch.planes,
                                    .rows = count,
                                    .places = scratch.offsets,
                                    .depth = outputs,
                                    .steps = scratch.places,
                                    .panel = scratch.rows + at * outputs,
                                    .columns = smaller(block->count - at, vectors * FAST_LANES),
                                    .to = block->dweight + c * taps * w->out_channels + at,
                                    .to_row = w->out_channels};
            if (c == 0) {
                float *dy = scratch.rows + at * outputs;
                transpose_outputs(block, piece, block->first + at, factors.columns, dy);
                for (size_t i = 0; i < vectors; i++) {
                    fast_vector sum = {0};
                    for (size_t o = 0; o < outputs; o++)
                        sum += fast_load(dy + (o * vectors + i) * FAST_LANES);
                    flat_add(sum, block->dbias + at + i * FAST_LANES, factors.columns - i * FAST_LANES);
                }
            }
            FAST(flat_multiply)(&factors);
        }
    }
}

/* ---- vectors of places ---- */

/* Whether so few output channels are in a group that vectors of them would be mostly empty. */
static bool by_place(const operation_window *w)
{
    return w->groups > 1 && w->out_channels / w->groups <= FAST_LANES / 4;
}

/* The gradients of one channel's outputs, at the places where the planes have the source under the first tap; zeros
 * between the rows. */
static void load_outputs(const weight_block *block, const flat_piece *piece, size_t channel, float *to)
{
    const operation_window *w = block->window;
    const flat_axis *high = &piece->shape.high, *wide = &piece->shape.wide;
    memset(to, 0, piece->shape.length * sizeof *to);
    for (size_t i = 0; i < piece->shape.images; i++)
        for (size_t y = 0; y < high->outputs; y++) {
            const float *from = block->dy + ((piece->image + i) * w->out_channels + channel) * w->out_h * w->out_w +
                                (piece->row + y) * w->out_w + piece->column;
            memcpy(to + (i * high->pitch + y) * wide->pitch, from, wide->outputs * sizeof *to);
        }
}

/* The sums over all places of dy times `taps` shifted planes. */
FAST_INLINE void tap_sums(size_t taps, size_t length, const float *dy, const float *planes, const int32_t *offsets,
                          float *sums)
{
    fast_vector sum[4];
    UNROLLED (t, taps)
        sum[t] = (fast_vector){0};
    for (size_t p = 0; p < length; p += FAST_LANES) {
        fast_vector by = fast_load(dy + p);
        UNROLLED (t, taps)
            sum[t] = fast_fma(by, fast_load(planes + offsets[t] + p), sum[t]);
    }
    UNROLLED (t, taps)
        sums[t] = fast_sum_lanes(sum[t]);
}

static void add_piece_by_place(const weight_block *block, const flat_piece *piece, size_t channels,
                               flat_scratch scratch)
{
    const operation_window *w = block->window;
    size_t taps = w->kernel_h * w->kernel_w, length = piece->shape.length;
    FAST(flat_offsets)(&piece->shape, channels, scratch.offsets);
    for (size_t c = 0; c < piece->shape.channels; c += channels) {
        size_t count = smaller(piece->shape.channels - c, channels) * taps;
        FAST(flat_load)(piece, block->x, c, count / taps, scratch.planes);
        for (size_t m = 0; m < block->count; m++) {
            float *dy = scratch.rows, *to = block->dweight + c * taps * w->out_channels + m, sums[4];
            load_outputs(block, piece, block->first + m, dy);
            for (size_t t = 0, some; t < count; t += some) {
                some = count - t >= 4 ? 4 : 1;
                if (some == 4)
                    tap_sums(4, length, dy, scratch.planes, scratch.offsets + t, sums);
                else
                    tap_sums(1, length, dy, scratch.planes, scratch.offsets + t, sums);
                for (size_t i = 0; i < some; i++)
                    to[(t + i) * w->out_channels] += sums[i];
            }
            fast_vector sum = {0};
            for (size_t p = 0; c == 0 && p < length; p += FAST_LANES)
                sum += fast_load(dy + p);
            block->dbias[m] += fast_sum_lanes(sum);
        }
    }
}

/* ---- both ---- */

static void add_block(const weight_block *block, flat_scratch scratch)
{
    const operation_window *w = block->window;
    flat_shape shape = FAST(flat_window)(w);
    flat_cut cut;
    FAST(flat_cut_make)(&shape, block->images, block->images, PIECE_LENGTH, &cut);
    for (size_t t = 0; t < shape.channels * w->kernel_h * w->kernel_w; t++)
        memset(block->dweight + t * w->out_channels, 0, block->count * sizeof(float));
    memset(block->dbias, 0, block->count * sizeof(float));
    size_t pieces = FAST(flat_cut_count)(&shape, block->images, &cut);
    for (size_t i = 0; i < pieces; i++) {
        flat_piece piece = FAST(flat_cut_piece)(&shape, block->images, &cut, i);
        (by_place(w) ? add_piece_by_place : add_piece)(block, &piece, cut.channels, scratch);
    }
}

/* to[c][r] (+)= the sum over the parts of partial[r][c], in order; the parts are `distance` values apart. */
typedef struct part_sums {
    size_t rows, columns, parts, distance;
    const float *partial;
    float *to;
    bool accumulate;
} part_sums;

/* A pass of the loop is FAST_LANES rows. */
static void add_parts(const void *args, parallel_range range)
{
    const part_sums *sums = args;
    const size_t rows = sums->rows, columns = sums->columns, parts = sums->parts, distance = sums->distance;
    for (size_t r = range.begin * FAST_LANES; r < smaller(range.end * FAST_LANES, rows); r += FAST_LANES)
        for (size_t c = 0; c < columns; c += FAST_LANES) {
            size_t high = smaller(rows - r, FAST_LANES), wide = smaller(columns - c, FAST_LANES);
            fast_vector sum[FAST_LANES] = {0};
            for (size_t part = 0; part < parts; part++) {
                fast_vector next[FAST_LANES];
                const float *from = sums->partial + part * distance + r * columns + c;
                block_load(rows_of(REMAT_FP32, from, 0, columns), REMAT_FP32, high, wide, next);
                UNROLLED (i, FAST_LANES)
                    sum[i] += next[i];
            }
            block_transpose(sum);
            for (size_t i = 0; i < wide; i++) {
                float *row = sums->to + (c + i) * rows + r;
                if (sums->accumulate)
                    flat_add(sum[i], row, high);
                else if (high == FAST_LANES)
                    fast_store(row, sum[i]);
                else
                    fast_store_part(row, sum[i], high);
            }
        }
}

static void add_all_parts(const kernel_run *run, const part_sums *sums)
{
    int threads = fast_threads(run, sums->rows * sums->columns * sums->parts);
    parallel_static(threads, divide_up(sums->rows, FAST_LANES), add_parts, sums);
}

/* How the work is cut: the images into parts, whose sums are added in order, and the output channels of a group into
 * blocks of `count`. */
typedef struct weight_loop {
    const kernel_run *run;
    const op_convolve_backward_weight *args;
    size_t parts, blocks, count;
} weight_loop;

static void add_blocks(const void *args, parallel_range range)
{
    const weight_loop *loop = args;
    const op_convolve_backward_weight *p = loop->args;
    const operation_window *w = &p->window;
    const float *x = p->x.at, *dy = p->dy.at;
    float *workspace = p->workspace.at;
    size_t weights = window_weights(w), partial = weights + w->out_channels;
    size_t in = w->in_channels * w->in_h * w->in_w, out = w->out_channels * w->out_h * w->out_w;
    size_t in_group = in / w->groups, outputs = w->out_channels / w->groups;
    for (size_t i = range.begin; i < range.end; i++) {
        size_t part = i / loop->blocks / w->groups, group = i / loop->blocks % w->groups;
        size_t begin = part * w->batch / loop->parts, end = (part + 1) * w->batch / loop->parts;
        size_t at = i % loop->blocks * loop->count, first = group * outputs + at;
        weight_block block = {
            .window = w,
            .x = x + begin * in + group * in_group,
            .dy = dy + begin * out,
            .images = end - begin,
            .first = first,
            .count = smaller(outputs - at, loop->count),
            .dweight = workspace + part * partial + first,
            .dbias = workspace + part * partial + weights + first,
        };
        add_block(&block, flat_scratch_of(loop->run, range.thread));
    }
}

void FAST(convolve_backward_weight)(const kernel_run *run, const void *args)
{
    const op_convolve_backward_weight *p = args;
    const operation_window *w = &p->window;
    float *workspace = p->workspace.at;
    size_t parts = window_parts(w), weights = window_weights(w), partial = weights + w->out_channels;
    size_t in = w->in_channels * w->in_h * w->in_w, out = w->out_channels * w->out_h * w->out_w;
    size_t taps = w->out_channels ? weights / w->out_channels : 0;
    flat_shape shape = FAST(flat_window)(w);
    flat_cut cut;
    if (w->batch == 0 || in == 0 || out == 0 || taps == 0 ||
        !FAST(flat_cut_make)(&shape, w->batch, w->batch, PIECE_LENGTH, &cut)) {
        reference_convolve_backward_weight_fp32(run, p);
        return;
    }
    /* Few blocks, because each loads the source again, but work for all threads. */
    int threads = fast_threads(run, w->batch * out * taps / 16);
    size_t team = (size_t)threads, tasks = parts * w->groups, outputs = w->out_channels / w->groups;
    size_t blocks = tasks % team == 0 || tasks >= 4 * team ? 1 : team;
    size_t count = round_up(divide_up(outputs, blocks), FAST_LANES);
    count = smaller(count, FLAT_ROWS / cut.most_length / FAST_LANES * FAST_LANES);
    const weight_loop loop = {run, p, parts, divide_up(outputs, count), count};
    parallel_dynamic(threads, tasks * loop.blocks, 1, add_blocks, &loop);
    part_sums sums = {taps, w->out_channels, parts, partial, workspace, p->dweight.at, p->accumulate};
    add_all_parts(run, &sums);
    if (p->dbias.at) {
        sums = (part_sums){1, w->out_channels, parts, partial, workspace + weights, p->dbias.at, p->accumulate};
        add_all_parts(run, &sums);
    }
}
