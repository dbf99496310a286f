#include "backend/cpu/fast_convolve_flat.h"

/* Channels at a time, if they fit. Few channels leave room for more images, and the weights of a panel stay in the nearest
 * cache. The number must not depend on that of the images: it decides in what order products are added. */
#define CHANNELS 64

/* Sixteen rows of outputs must fit the scratch, and the places of their vectors. */
#define MOST_LENGTH (FLAT_ROWS / 16)
_Static_assert(MOST_LENGTH / FAST_LANES <= FLAT_PLACES, "no room for the places");

flat_shape FAST(flat_window)(const operation_window *w)
{
    return (flat_shape){.high = {w->in_h, -(ptrdiff_t)w->pad_h, w->stride_h, w->kernel_h, w->dilation_h, w->out_h, 0},
                        .wide = {w->in_w, -(ptrdiff_t)w->pad_w, w->stride_w, w->kernel_w, w->dilation_w, w->out_w, 0},
                        .channels = w->in_channels / w->groups,
                        .image = w->in_channels * w->in_h * w->in_w};
}

/* The places of the source from the first tap to the last. */
static size_t span(const flat_axis *axis)
{
    return (axis->taps - 1) * axis->dilation + 1;
}

/* Planes for each channel along an axis: phases of the stride. */
static size_t planes(const flat_axis *axis)
{
    return smaller(axis->stride, span(axis));
}

/* How far the taps reach beyond their first one, in places of a plane. */
static size_t reach(const flat_axis *axis)
{
    return (span(axis) - 1) / axis->stride;
}

/* The places q of a plane, begin <= q < end, that hold values of the source; the others are zero. Place q of plane f
 * is the source under tap f of output q. */
static void plane_values(const flat_axis *axis, size_t plane, size_t *begin, size_t *end)
{
    ptrdiff_t first = axis->first + (ptrdiff_t)plane, size = (ptrdiff_t)axis->size;
    *begin = first < 0 ? divide_up((size_t)-first, axis->stride) : 0;
    *end = first < size ? divide_up((size_t)(size - first), axis->stride) : 0;
    *end = smaller(*end, axis->outputs + reach(axis));
    *begin = smaller(*begin, *end);
}

/* The least distance between rows at which the zeros before a row can serve as those behind the row before. */
static void arrange_axis(flat_axis *axis)
{
    axis->pitch = axis->outputs;
    size_t full = axis->outputs + reach(axis);
    for (size_t plane = 0; plane < planes(axis); plane++) {
        size_t begin, end;
        plane_values(axis, plane, &begin, &end);
        axis->pitch = larger(axis->pitch, begin < end ? larger(full - begin, end) : 0);
    }
}

/* Covers the outputs, row by row, with vectors that do not overlap. Returns how many there are. */
static size_t cover(const flat_shape *shape, int32_t *places)
{
    const flat_axis *high = &shape->high, *wide = &shape->wide;
    size_t count = 0, covered = 0;
    for (size_t i = 0; i < shape->images; i++)
        for (size_t y = 0; y < high->outputs; y++) {
            size_t begin = (i * high->pitch + y) * wide->pitch, end = begin + wide->outputs;
            for (size_t p = larger(begin, covered); p < end; p = covered) {
                if (places)
                    places[count] = (int32_t)p;
                count++;
                covered = p + FAST_LANES;
            }
        }
    return count;
}

void FAST(flat_places)(const flat_shape *shape, int32_t *places)
{
    cover(shape, places);
}

static void arrange(flat_shape *shape)
{
    flat_axis *high = &shape->high, *wide = &shape->wide;
    arrange_axis(high);
    arrange_axis(wide);
    size_t rows = (shape->images - 1) * high->pitch + high->outputs;
    /* The last vector may reach beyond the last output. */
    shape->length = round_up((rows - 1) * wide->pitch + wide->outputs + FAST_LANES - 1, FAST_LANES);
    shape->plane = round_up(shape->length + reach(high) * wide->pitch + reach(wide), FAST_LANES);
    if (shape->plane % 1024 == 0) /* planes a multiple of 4 KiB apart would evict each other */
        shape->plane += FAST_LANES;
    shape->vectors = cover(shape, NULL);
}

/* An upper bound of arrange() for any piece of these sizes. */
static void bound_piece(const flat_shape *whole, size_t images, size_t rows, size_t columns, size_t *length,
                        size_t *values)
{
    size_t high = rows + reach(&whole->high), wide = columns + reach(&whole->wide);
    *length = round_up(((images - 1) * high + rows) * wide + FAST_LANES - 1, FAST_LANES);
    *values = planes(&whole->high) * planes(&whole->wide) *
              (round_up(*length + reach(&whole->high) * wide + reach(&whole->wide), FAST_LANES) + FAST_LANES);
}

bool FAST(flat_cut_make)(const flat_shape *whole, size_t batch, size_t most_images, size_t length, flat_cut *cut)
{
    size_t rows = whole->high.outputs, columns = whole->wide.outputs, values;
    *cut = (flat_cut){1, rows, columns, 0, 0};
    if (columns > length)
        cut->columns = divide_up(columns, divide_up(columns, length));
    cut->rows = smaller(rows, larger(1, length / (cut->columns + reach(&whole->wide))));
    cut->rows = divide_up(rows, divide_up(rows, cut->rows));
    bound_piece(whole, 1, cut->rows, cut->columns, &cut->most_length, &values);
    if (values > FLAT_PLANES || cut->most_length > MOST_LENGTH) {
        cut->rows = 1;
        cut->columns = smaller(columns, 64);
        bound_piece(whole, 1, cut->rows, cut->columns, &cut->most_length, &values);
    }
    cut->channels = smaller(smaller(whole->channels, CHANNELS), FLAT_PLANES / values);
    if (cut->channels == 0 || cut->most_length > MOST_LENGTH)
        return false;
    if (cut->rows < rows || cut->columns < columns)
        return true;
    for (size_t images = 2; images <= smaller(batch, most_images); images++) {
        size_t long_length;
        bound_piece(whole, images, rows, columns, &long_length, &values);
        if (long_length > length || values * cut->channels > FLAT_PLANES)
            break;
        cut->images = images;
        cut->most_length = long_length;
    }
    return true;
}

size_t FAST(flat_cut_count)(const flat_shape *whole, size_t batch, const flat_cut *cut)
{
    return divide_up(batch, cut->images) * divide_up(whole->high.outputs, cut->rows) *
           divide_up(whole->wide.outputs, cut->columns);
}

flat_piece FAST(flat_cut_piece)(const flat_shape *whole, size_t batch, const flat_cut *cut, size_t index)
{
    size_t high = divide_up(whole->high.outputs, cut->rows), wide = divide_up(whole->wide.outputs, cut->columns);
    flat_piece piece = {*whole, index / wide / high * cut->images, index / wide % high * cut->rows,
                        index % wide * cut->columns};
    flat_axis *rows = &piece.shape.high, *columns = &piece.shape.wide;
    piece.shape.images = smaller(cut->images, batch - piece.image);
    rows->first += (ptrdiff_t)(piece.row * rows->stride);
    rows->outputs = smaller(cut->rows, rows->outputs - piece.row);
    columns->first += (ptrdiff_t)(piece.column * columns->stride);
    columns->outputs = smaller(cut->columns, columns->outputs - piece.column);
    arrange(&piece.shape);
    return piece;
}

/* Inline, because rows are short: a call would cost more than the copy. */
FAST_INLINE void copy_row(const float *from, size_t count, float *to, bool add)
{
    size_t i = 0;
    for (; i + FAST_LANES <= count; i += FAST_LANES) {
        fast_vector x = fast_load(from + i);
        fast_store(to + i, add ? x + fast_load(to + i) : x);
    }
    if (i < count) {
        fast_vector x = fast_load_part(from + i, count - i);
        fast_store_part(to + i, add ? x + fast_load_part(to + i, count - i) : x, count - i);
    }
}

/* Every second one of `count` < 2 FAST_LANES values, then zeros. */
FAST_INLINE fast_vector load_even(const float *from, size_t count)
{
    fast_vector low = count < FAST_LANES ? fast_load_part(from, count) : fast_load(from), high = {0};
    if (count > FAST_LANES)
        high = fast_load_part(from + FAST_LANES, count - FAST_LANES);
#if FAST_LANES == 16
    return FAST_SHUFFLE(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif FAST_LANES == 8
    return FAST_SHUFFLE(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return FAST_SHUFFLE(low, high, 0, 2, 4, 6);
#endif
}

/* A part of one plane: `rows` rows of `count` values, `stride` apart in the source. The last vector of a row is stored
 * whole: its zeros fall on places that hold zeros, or on rows that are loaded later. */
typedef struct plane_part {
    const float *from;
    size_t from_row, stride, count, rows, to_row;
} plane_part;

static void load_part(plane_part part, float *to)
{
    const float *from = part.from;
    if (part.stride == 1 && part.from_row == part.count && part.to_row == part.count) {
        part.count *= part.rows;
        part.rows = 1;
    }
    for (size_t row = 0; row < part.rows; row++, from += part.from_row, to += part.to_row) {
        size_t i = 0;
        if (part.stride == 1) {
            for (; i + FAST_LANES <= part.count; i += FAST_LANES)
                fast_store(to + i, fast_load(from + i));
            if (i < part.count)
                fast_store(to + i, fast_load_part(from + i, part.count - i));
        } else if (part.stride == 2) {
            for (; i < part.count; i += FAST_LANES)
                fast_store(to + i, load_even(from + 2 * i, 2 * smaller(part.count - i, FAST_LANES) - 1));
        } else {
            for (; i < part.count; i++)
                to[i] = from[part.stride * i];
        }
    }
}

/* One plane of each of `count` channels. */
static void load_planes(const flat_piece *piece, const float *source, size_t first, size_t count, size_t plane_h,
                        size_t plane_w, float *to, size_t to_channel)
{
    const flat_shape *shape = &piece->shape;
    const flat_axis *high = &shape->high, *wide = &shape->wide;
    size_t top, bottom, left, right, area = high->size * wide->size;
    plane_values(high, plane_h, &top, &bottom);
    plane_values(wide, plane_w, &left, &right);
    if (top == bottom || left == right)
        return;
    size_t y = (size_t)(high->first + (ptrdiff_t)(top * high->stride + plane_h));
    size_t x = (size_t)(wide->first + (ptrdiff_t)(left * wide->stride + plane_w));
    plane_part part = {NULL, high->stride * wide->size, wide->stride, right - left, bottom - top, wide->pitch};
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < shape->images; i++) {
            part.from = source + (piece->image + i) * shape->image + (first + c) * area + y * wide->size + x;
            load_part(part, to + c * to_channel + (i * high->pitch + top) * wide->pitch + left);
        }
}

void FAST(flat_load)(const flat_piece *piece, const float *source, size_t first, size_t count, float *to)
{
    const flat_shape *shape = &piece->shape;
    size_t planes_h = planes(&shape->high), planes_w = planes(&shape->wide);
    size_t channel = planes_h * planes_w * shape->plane;
    memset(to, 0, count * channel * sizeof *to);
    for (size_t plane_h = 0; plane_h < planes_h; plane_h++)
        for (size_t plane_w = 0; plane_w < planes_w; plane_w++)
            load_planes(piece, source, first, count, plane_h, plane_w,
                        to + (plane_h * planes_w + plane_w) * shape->plane, channel);
}

void FAST(flat_offsets)(const flat_shape *shape, size_t count, int32_t *offsets)
{
    const flat_axis *high = &shape->high, *wide = &shape->wide;
    size_t planes_h = planes(high), planes_w = planes(wide);
    size_t taps = high->taps * wide->taps, channel = planes_h * planes_w * shape->plane;
    for (size_t t = 0; t < taps; t++) {
        size_t y = t / wide->taps * high->dilation, x = t % wide->taps * wide->dilation;
        size_t plane = y % high->stride * planes_w + x % wide->stride;
        offsets[t] = (int32_t)(plane * shape->plane + y / high->stride * wide->pitch + x / wide->stride);
    }
    for (size_t i = taps; i < count * taps; i++)
        offsets[i] = offsets[i - taps] + (int32_t)channel;
}

void FAST(flat_store)(const flat_piece *piece, const float *row, const flat_target *target)
{
    const flat_axis *high = &piece->shape.high, *wide = &piece->shape.wide;
    bool dense = target->step_w == 1 && target->step_h == wide->outputs && wide->pitch == wide->outputs;
    size_t rows = dense ? 1 : high->outputs, columns = dense ? high->outputs * wide->outputs : wide->outputs;
    for (size_t i = 0; i < piece->shape.images; i++)
        for (size_t y = 0; y < rows; y++) {
            const float *from = row + (i * high->pitch + y) * wide->pitch;
            float *to = target->to + (piece->image + i) * target->image + (piece->row + y) * target->step_h +
                        piece->column * target->step_w;
            if (target->step_w == 1 && target->add)
                copy_row(from, columns, to, true);
            else if (target->step_w == 1)
                copy_row(from, columns, to, false);
            else
                for (size_t x = 0; x < columns; x++, to += target->step_w)
                    *to = target->add ? *to + from[x] : from[x];
        }
}

void FAST(flat_outputs)(const flat_shape *shape, int32_t *places)
{
    for (size_t i = 0; i < shape->images; i++)
        for (size_t y = 0; y < shape->high.outputs; y++)
            for (size_t x = 0; x < shape->wide.outputs; x++)
                *places++ = (int32_t)((i * shape->high.pitch + y) * shape->wide.pitch + x);
}

/* Some rows of the GEMM, from the first on. */
FAST_INLINE void multiply(size_t rows, size_t vectors, const flat_factors *f)
{
    tile_sums sum = {0};
    const float *from[TILE_ROWS], *panel = f->panel;
    const int32_t *steps = f->steps;
    size_t depth = f->depth;
    UNROLLED (r, rows)
        from[r] = f->planes + f->places[r];
    for (size_t k = 0; k < depth; k++, panel += vectors * FAST_LANES) {
        size_t step = (size_t)steps[k];
        fast_vector row[TILE_VECTORS];
        UNROLLED (v, vectors)
            row[v] = fast_load(panel + v * FAST_LANES);
        UNROLLED (r, rows) {
            fast_vector x = fast_repeat(from[r][step]);
            UNROLLED (v, vectors)
                sum[r][v] = fast_fma(x, row[v], sum[r][v]);
        }
    }
    UNROLLED (r, rows)
        UNROLLED (v, vectors)
            flat_add(sum[r][v], f->to + r * f->to_row + v * FAST_LANES, f->columns - v * FAST_LANES);
}

typedef void multiply_function(const flat_factors *factors);
#define MULTIPLY(name, rows, vectors)                                           \
    FAST_NOINLINE void multiply_##name##_##vectors(const flat_factors *factors) \
    {                                                                           \
        multiply(rows, vectors, factors);                                       \
    }
MULTIPLY(some, TILE_ROWS, 1)
MULTIPLY(some, TILE_ROWS, 2)
MULTIPLY(some, TILE_ROWS, 3)
MULTIPLY(one, 1, 1)
MULTIPLY(one, 1, 2)
MULTIPLY(one, 1, 3)

void FAST(flat_multiply)(const flat_factors *factors)
{
    static multiply_function *const some[] = {multiply_some_1, multiply_some_2, multiply_some_3};
    static multiply_function *const one[] = {multiply_one_1, multiply_one_2, multiply_one_3};
    size_t last = (factors->columns - 1) / FAST_LANES;
    flat_factors left = *factors;
    for (size_t rows; left.rows > 0; left.rows -= rows) {
        rows = left.rows < TILE_ROWS ? 1 : TILE_ROWS;
        (rows == 1 ? one : some)[last](&left);
        left.places += rows;
        left.to += rows * left.to_row;
    }
}
