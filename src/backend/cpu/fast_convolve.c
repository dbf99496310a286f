/* Convolution and its gradient of the input: one or several GEMMs over flat images. */
#include "backend/cpu/fast_convolve_flat.h"
#include "backend/cpu/fast_math.h"
#include "backend/cpu/reference.h"
#include "backend/cpu/window.h"

/* About how many outputs a piece has, for vectors of places and for vectors of channels: its data stay in the near
 * caches. */
#define PLACES_LENGTH   2048
#define CHANNELS_LENGTH 512

/* ---- vectors of places ---- */

/* What the rows of outputs of a piece are computed from. */
typedef struct place_factors {
    const float *weight; /* for each tap those of all rows */
    const float *bias;   /* of each row, or NULL */
    size_t count;        /* of taps, each with its offset in the planes */
    const int32_t *offsets;
    const float *planes;
    const int32_t *places; /* of vectors of outputs */
    size_t vectors;
    size_t length; /* of a row of outputs */
} place_factors;

/* `rows` x `vectors` outputs: out[r] = bias[r] + the sum over k of weight[k][r] * the vector at offset k. */
FAST_INLINE void tile(size_t rows, size_t vectors, const place_factors *f, const int32_t *places, float *out)
{
    fast_vector sum[TILE_ROWS][3];
    size_t at[3], count = f->count;
    const float *weight = f->weight, *planes = f->planes;
    const int32_t *offsets = f->offsets;
    UNROLLED (v, vectors)
        at[v] = (size_t)places[v];
    UNROLLED (r, rows)
        UNROLLED (v, vectors)
            sum[r][v] = fast_repeat(f->bias ? f->bias[r] : 0);
    for (size_t k = 0; k < count; k++) {
        const float *from = planes + offsets[k];
        fast_vector x[3];
        UNROLLED (v, vectors)
            x[v] = fast_load(from + at[v]);
        UNROLLED (r, rows) {
            fast_vector w = fast_repeat(weight[k * rows + r]);
            UNROLLED (v, vectors)
                sum[r][v] = fast_fma(w, x[v], sum[r][v]);
        }
    }
    UNROLLED (r, rows)
        UNROLLED (v, vectors)
            fast_store(out + r * f->length + at[v], sum[r][v]);
}

FAST_INLINE void fill_rows(size_t rows, const place_factors *f, float *out)
{
    size_t v = 0;
    for (; v + 3 <= f->vectors; v += 3)
        tile(rows, 3, f, f->places + v, out);
    if (v + 2 <= f->vectors)
        tile(rows, 2, f, f->places + v, out);
    else if (v < f->vectors)
        tile(rows, 1, f, f->places + v, out);
}

/* Computes as many rows of outputs, one for each output channel. */
typedef void fill_function(const place_factors *factors, float *out);
#define FILL(rows)                                                           \
    FAST_NOINLINE void fill_##rows(const place_factors *factors, float *out) \
    {                                                                        \
        fill_rows(rows, factors, out);                                       \
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

/* A convolution as the GEMM of the weights, outputs x (channels, taps), and the source, for each group of channels. The
 * weights of a group are packed in panels of panel_rows() outputs each; a panel has the weights of all its outputs for the
 * first tap, then for the second, and so on. */
typedef struct flat_gemm {
    flat_shape shape; /* of one group, as `outputs` */
    const float *source, *weight, *bias;
    size_t outputs;
    flat_target target; /* of output channel 0 */
    size_t channel;     /* from one output channel to the next */
    size_t groups;
} flat_gemm;

static size_t group_weights(const flat_gemm *gemm)
{
    return gemm->outputs * gemm->shape.channels * gemm->shape.high.taps * gemm->shape.wide.taps;
}

/* The GEMM of one group. */
static flat_gemm group_gemm(const flat_gemm *whole, size_t group)
{
    flat_gemm gemm = *whole;
    gemm.source += group * gemm.shape.channels * gemm.shape.high.size * gemm.shape.wide.size;
    gemm.weight += group * group_weights(whole);
    gemm.bias = gemm.bias ? gemm.bias + group * gemm.outputs : NULL;
    gemm.target.to += group * gemm.outputs * gemm.channel;
    return gemm;
}

static void places_piece(const flat_gemm *gemm, const flat_cut *cut, const flat_piece *piece, flat_scratch scratch)
{
    const flat_shape *shape = &piece->shape;
    size_t taps = shape->high.taps * shape->wide.taps, weight_row = shape->channels * taps;
    FAST(flat_offsets)(shape, cut->channels, scratch.offsets);
    FAST(flat_places)(shape, scratch.places);
    for (size_t c = 0; c < shape->channels; c += cut->channels) {
        size_t count = smaller(shape->channels - c, cut->channels), rows;
        FAST(flat_load)(piece, gemm->source, c, count, scratch.planes);
        for (size_t m = 0; m < gemm->outputs; m += rows) {
            fill_function *fill = fill_for(gemm->outputs - m, &rows);
            place_factors factors = {.weight = gemm->weight + m * weight_row + c * taps * rows,
                                     .bias = gemm->bias && c == 0 ? gemm->bias + m : NULL,
                                     .count = count * taps,
                                     .offsets = scratch.offsets,
                                     .planes = scratch.planes,
                                     .places = scratch.places,
                                     .vectors = shape->vectors,
                                     .length = shape->length};
            fill(&factors, scratch.rows);
            for (size_t r = 0; r < rows; r++) {
                flat_target target = gemm->target;
                target.to += (m + r) * gemm->channel;
                target.add |= c > 0;
                FAST(flat_store)(piece, scratch.rows + r * shape->length, &target);
            }
        }
    }
}

/* ---- vectors of output channels ---- */

/* Whether vectors hold output channels. Between narrow rows and small images there are many places whose results would be
 * thrown away. Vectors of channels waste no lanes there; but channels must fill them, and results must be transposed,
 * which pays where taps are many. The last condition: a piece of 64 outputs fits the scratch. */
static bool by_channel(const flat_gemm *gemm)
{
    const flat_shape *shape = &gemm->shape;
    return shape->wide.outputs < 16 && gemm->outputs % FAST_LANES == 0 &&
           shape->channels * shape->high.taps * shape->wide.taps >= 128 &&
           (gemm->outputs + FAST_LANES) * 64 <= FLAT_ROWS;
}

static void channels_piece(const flat_gemm *gemm, const flat_cut *cut, const flat_piece *piece, flat_scratch scratch)
{
    const flat_shape *shape = &piece->shape;
    size_t taps = shape->high.taps * shape->wide.taps, weight_row = shape->channels * taps;
    size_t outputs = shape->images * shape->high.outputs * shape->wide.outputs, all = gemm->outputs / FAST_LANES;
    float *transposed = scratch.rows + gemm->outputs * outputs; /* FAST_LANES rows */
    flat_piece dense = *piece;
    dense.shape.high.pitch = shape->high.outputs;
    dense.shape.wide.pitch = shape->wide.outputs;
    FAST(flat_offsets)(shape, cut->channels, scratch.offsets);
    FAST(flat_outputs)(shape, scratch.places);
    for (size_t c = 0, count; c < shape->channels; c += count) {
        count = smaller(shape->channels - c, cut->channels);
        FAST(flat_load)(piece, gemm->source, c, count, scratch.planes);
        for (size_t v = 0, vectors; v < all; v += vectors) {
            vectors = panel_vectors(all - v);
            size_t m = v * FAST_LANES, width = vectors * FAST_LANES;
            float *rows = scratch.rows + m * outputs;
            for (size_t i = 0; i < outputs * vectors && c == 0; i++)
                fast_store(rows + i * FAST_LANES,
                           gemm->bias ? fast_load(gemm->bias + m + i % vectors * FAST_LANES) : (fast_vector){0});
            flat_factors factors = {.planes = scratch.planes,
                                    .rows = outputs,
                                    .depth = count * taps,
                                    .columns = width,
                                    .places = scratch.places,
                                    .steps = scratch.offsets,
                                    .panel = gemm->weight + m * weight_row + c * taps * width,
                                    .to = rows,
                                    .to_row = width};
            FAST(flat_multiply)(&factors);
            for (size_t i = 0; i < width && c + count == shape->channels; i++) {
                flat_target target = gemm->target;
                target.to += (m + i) * gemm->channel;
                if (i % FAST_LANES == 0)
                    pack_panel(&(pack_source){rows + i, width, FAST_LANES, outputs, true, REMAT_FP32, 0}, transposed);
                FAST(flat_store)(&dense, transposed + i % FAST_LANES * round_up(outputs, FAST_LANES), &target);
            }
        }
    }
}

/* ---- both ---- */

/* Outputs of the panel that begins with output m. */
static size_t panel_rows(const flat_gemm *gemm, size_t m)
{
    size_t left = gemm->outputs - m, rows;
    if (by_channel(gemm))
        return FAST_LANES * panel_vectors(left / FAST_LANES);
    fill_for(left, &rows);
    return rows;
}

/* Where the weight of output m, channel c and tap (y, x) of group g is:
 * at first + g * group + m * output + c * channel + y * high + x * wide. */
typedef struct weight_steps {
    const float *first;
    ptrdiff_t group, output, channel, high, wide;
} weight_steps;

typedef struct pack_loop {
    const flat_gemm *gemm;
    weight_steps from;
    float *packed;
} pack_loop;

/* A pass of the loop is a channel of a group. */
static void pack_channels(const void *args, parallel_range range)
{
    const pack_loop *loop = args;
    const flat_gemm *gemm = loop->gemm;
    const flat_shape *shape = &gemm->shape;
    const weight_steps from = loop->from;
    size_t taps = shape->high.taps * shape->wide.taps, row = shape->channels * taps;
    for (size_t i = range.begin; i < range.end; i++) {
        size_t group = i / shape->channels, c = i % shape->channels;
        float *packed = loop->packed + group * group_weights(gemm);
        const float *first = from.first + (ptrdiff_t)group * from.group;
        for (size_t m = 0, rows; m < gemm->outputs; m += rows) {
            rows = panel_rows(gemm, m);
            float *to = packed + m * row + c * taps * rows;
            const float *panel = first + (ptrdiff_t)m * from.output + (ptrdiff_t)c * from.channel;
            for (size_t y = 0; y < shape->high.taps; y++)
                for (size_t x = 0; x < shape->wide.taps; x++)
                    for (size_t r = 0; r < rows; r++)
                        *to++ = panel[(ptrdiff_t)r * from.output + (ptrdiff_t)y * from.high + (ptrdiff_t)x * from.wide];
        }
    }
}

static void pack_weights(const kernel_run *run, const flat_gemm *gemm, weight_steps from, float *packed)
{
    const pack_loop loop = {gemm, from, packed};
    int threads = fast_threads(run, gemm->groups * group_weights(gemm));
    parallel_static(threads, gemm->groups * gemm->shape.channels, pack_channels, &loop);
}

static size_t piece_length(const flat_gemm *gemm)
{
    if (!by_channel(gemm))
        return PLACES_LENGTH;
    return smaller(CHANNELS_LENGTH, FLAT_ROWS / (gemm->outputs + FAST_LANES) / FAST_LANES * FAST_LANES);
}

static bool gemm_fits(const flat_gemm *gemm, size_t batch)
{
    flat_cut cut;
    return FAST(flat_cut_make)(&gemm->shape, batch, 1, piece_length(gemm), &cut);
}

typedef struct gemm_loop {
    const kernel_run *run;
    const flat_gemm *gemm;
    size_t batch;
    flat_cut cut;
} gemm_loop;

/* A pass of the loop is a piece of a group. */
static void gemm_pieces(const void *args, parallel_range range)
{
    const gemm_loop *loop = args;
    bool channels = by_channel(loop->gemm);
    for (size_t i = range.begin; i < range.end; i++) {
        flat_gemm gemm = group_gemm(loop->gemm, i % loop->gemm->groups);
        flat_piece piece = FAST(flat_cut_piece)(&gemm.shape, loop->batch, &loop->cut, i / loop->gemm->groups);
        flat_scratch scratch = flat_scratch_of(loop->run, range.thread);
        (channels ? channels_piece : places_piece)(&gemm, &loop->cut, &piece, scratch);
    }
}

static void gemm_run(const kernel_run *run, const flat_gemm *gemm, size_t batch)
{
    const flat_shape *shape = &gemm->shape;
    size_t taps = shape->channels * shape->high.taps * shape->wide.taps;
    size_t values = batch * gemm->groups * gemm->outputs * shape->high.outputs * shape->wide.outputs;
    int threads = fast_threads(run, values * taps / 16); /* 16 taps take about as long as a value of other kernels */
    size_t images = batch / (4 * (size_t)threads);       /* of a piece, if they are small: there must be work for all */
    gemm_loop loop = {.run = run, .gemm = gemm, .batch = batch};
    FAST(flat_cut_make)(shape, batch, images, piece_length(gemm), &loop.cut);
    parallel_dynamic(threads, gemm->groups * FAST(flat_cut_count)(shape, batch, &loop.cut), 1, gemm_pieces, &loop);
}

void FAST(convolve)(const kernel_run *run, const void *args)
{
    const op_convolve *p = args;
    const operation_window *w = &p->window;
    float *workspace = p->workspace.at;
    size_t area = w->out_h * w->out_w;
    if (w->batch == 0 || w->out_channels == 0 || area == 0)
        return;
    flat_gemm gemm = {
        .shape = FAST(flat_window)(w),
        .source = p->x.at,
        .weight = workspace,
        .bias = p->bias.at,
        .outputs = w->out_channels / w->groups,
        .target = {p->y.at, w->out_channels * area, w->out_w, 1, false},
        .channel = area,
        .groups = w->groups,
    };
    if (window_weights(w) == 0 || !gemm_fits(&gemm, w->batch)) {
        reference_convolve_fp32(run, p);
        return;
    }
    ptrdiff_t kernel = (ptrdiff_t)(w->kernel_h * w->kernel_w);
    weight_steps from = {p->weight.at, (ptrdiff_t)group_weights(&gemm), (ptrdiff_t)gemm.shape.channels * kernel,
                         kernel,       (ptrdiff_t)w->kernel_w,          1};
    pack_weights(run, &gemm, from, workspace);
    gemm_run(run, &gemm, w->batch);
}

/* One phase of the input along one axis: the places phase, phase + stride, ... of the padded input, where phase is the
 * place of tap `tap`. They are read by the taps tap, tap + step, ... only, and in reverse order these taps belong to
 * outputs that are the same distance apart. Without dilation these outputs are neighbours, and step is the stride. */
typedef struct phase_axis {
    flat_axis axis;
    size_t begin;    /* the first such place inside the input */
    size_t last_tap; /* the last of the taps */
    size_t step;     /* from tap to tap */
} phase_axis;

static size_t greatest_divisor(size_t a, size_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* How many phases have taps. Each is that of one of the first taps. */
static size_t phase_count(size_t kernel, size_t stride, size_t dilation)
{
    return smaller(stride / greatest_divisor(stride, dilation), kernel);
}

static phase_axis phase_of(size_t tap, size_t in, size_t out, size_t kernel, size_t stride, size_t pad, size_t dilation)
{
    size_t divisor = greatest_divisor(stride, dilation), step = stride / divisor,
           taps = (kernel - tap + step - 1) / step;
    size_t phase = tap * dilation % stride,
           ahead = tap * dilation / stride; /* outputs from tap 0 of that place to `tap` */
    size_t skipped = phase < pad ? (pad - phase + stride - 1) / stride : 0;
    size_t begin = phase + skipped * stride - pad;
    ptrdiff_t first = (ptrdiff_t)skipped - (ptrdiff_t)ahead - (ptrdiff_t)((taps - 1) * (dilation / divisor));
    return (phase_axis){.axis = {.size = out,
                                 .first = first,
                                 .stride = 1,
                                 .taps = taps,
                                 .dilation = dilation / divisor,
                                 .outputs = begin < in ? (in - begin + stride - 1) / stride : 0},
                        .begin = begin,
                        .last_tap = tap + (taps - 1) * step,
                        .step = step};
}

/* The weights of a phase: the channels of the input are the outputs here, and the taps run backwards. */
static weight_steps phase_weights(const operation_window *w, const float *weight, const phase_axis *high,
                                  const phase_axis *wide)
{
    ptrdiff_t kernel = (ptrdiff_t)(w->kernel_h * w->kernel_w), channels = (ptrdiff_t)(w->in_channels / w->groups);
    return (weight_steps){.first = weight + high->last_tap * w->kernel_w + wide->last_tap,
                          .group = (ptrdiff_t)(w->out_channels / w->groups) * channels * kernel,
                          .output = kernel,
                          .channel = channels * kernel,
                          .high = -(ptrdiff_t)(high->step * w->kernel_w),
                          .wide = -(ptrdiff_t)wide->step};
}

void FAST(convolve_backward_input)(const kernel_run *run, const void *args)
{
    const op_convolve_backward_input *p = args;
    const operation_window *w = &p->window;
    float *dx = p->dx.at, *workspace = p->workspace.at;
    size_t area = w->in_h * w->in_w, values = w->batch * w->in_channels * area;
    if (values == 0)
        return;
    /* A phase is no larger than the whole kernel at stride 1: if that fits, all do. */
    flat_gemm gemm = {
        .shape = {.high = {w->out_h, 0, 1, w->kernel_h, w->dilation_h, w->in_h, 0},
                  .wide = {w->out_w, 0, 1, w->kernel_w, w->dilation_w, w->in_w, 0},
                  .channels = w->out_channels / w->groups,
                  .image = w->out_channels * w->out_h * w->out_w},
        .source = p->dy.at,
        .weight = workspace,
        .outputs = w->in_channels / w->groups,
        .channel = area,
        .groups = w->groups,
    };
    if (window_weights(w) == 0 || !gemm_fits(&gemm, w->batch)) {
        reference_convolve_backward_input_fp32(run, p);
        return;
    }
    size_t phases_h = phase_count(w->kernel_h, w->stride_h, w->dilation_h);
    size_t phases_w = phase_count(w->kernel_w, w->stride_w, w->dilation_w);
    if (!p->accumulate && (phases_h < w->stride_h || phases_w < w->stride_w))
        memset(dx, 0, values * sizeof *dx); /* no tap reaches some of it */
    for (size_t i = 0; i < phases_h * phases_w; i++) {
        phase_axis high = phase_of(i / phases_w, w->in_h, w->out_h, w->kernel_h, w->stride_h, w->pad_h, w->dilation_h);
        phase_axis wide = phase_of(i % phases_w, w->in_w, w->out_w, w->kernel_w, w->stride_w, w->pad_w, w->dilation_w);
        gemm.shape.high = high.axis;
        gemm.shape.wide = wide.axis;
        if (high.axis.outputs == 0 || wide.axis.outputs == 0)
            continue;
        pack_weights(run, &gemm, phase_weights(w, p->weight.at, &high, &wide), workspace);
        gemm.target = (flat_target){dx + high.begin * w->in_w + wide.begin, w->in_channels * area,
                                    w->stride_h * w->in_w, w->stride_w, p->accumulate};
        gemm_run(run, &gemm, w->batch);
    }
}
