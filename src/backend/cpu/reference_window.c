/* Convolution and pooling, straight from their definitions. */
#include "backend/cpu/chosen_taps.h"
#include "backend/cpu/reference.h"
#include "backend/cpu/window.h"

#include <string.h>

/* The row or column of the image under tap `tap` of output `out`; false in the padding. A tap of a dilated kernel is
 * counted in places of the image. */
static bool position(size_t out, size_t stride, size_t tap, size_t pad, size_t size, size_t *at)
{
    size_t padded = out * stride + tap;
    *at = padded - pad;
    return padded >= pad && *at < size;
}

/* Every pair of an output and an input inside the image that a tap joins, for one pair of planes. The body reads `o`
 * and `i`, positions in the planes, and `tap`, the position in the kernel. */
#define EACH_DILATED_TAP(w, high, wide, BODY)                                                   \
    for (size_t oy = 0, o = 0; oy < (w)->out_h; oy++)                                           \
        for (size_t ox = 0; ox < (w)->out_w; ox++, o++)                                         \
            for (size_t ky = 0, tap = 0, iy, ix; ky < (w)->kernel_h; ky++)                      \
                for (size_t kx = 0; kx < (w)->kernel_w; kx++, tap++)                            \
                    if (position(oy, (w)->stride_h, ky * (high), (w)->pad_h, (w)->in_h, &iy) && \
                        position(ox, (w)->stride_w, kx * (wide), (w)->pad_w, (w)->in_w, &ix)) { \
                        size_t i = iy * (w)->in_w + ix;                                         \
                        BODY;                                                                   \
                    }
#define EACH_TAP(w, BODY) EACH_DILATED_TAP(w, 1, 1, BODY)

/* Output m of an image reads channel c of its group: the planes of both among those of all images, and the kernel among
 * those of the weights. */
typedef struct plane_pair {
    size_t out, in, kernel;
} plane_pair;

static plane_pair pair_planes(const operation_window *w, size_t image, size_t m, size_t c)
{
    size_t channels = w->in_channels / w->groups, outputs = w->out_channels / w->groups;
    return (plane_pair){image * w->out_channels + m, image * w->in_channels + m / outputs * channels + c,
                        m * channels + c};
}

void REFERENCE(convolve)(const kernel_run *run, const void *args)
{
    const op_convolve *p = args;
    const operation_window *w = &p->window;
    const real *x = p->x.at, *weight = p->weight.at, *bias = p->bias.at;
    real *y = p->y.at;
    (void)run;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, taps = w->kernel_h * w->kernel_w;
    for (size_t b = 0; b < w->batch; b++)
        for (size_t m = 0; m < w->out_channels; m++) {
            real *to = y + (b * w->out_channels + m) * out;
            for (size_t o = 0; o < out; o++)
                to[o] = bias ? bias[m] : 0;
            for (size_t c = 0; c < w->in_channels / w->groups; c++) {
                plane_pair pair = pair_planes(w, b, m, c);
                const real *from = x + pair.in * in, *by = weight + pair.kernel * taps;
                EACH_DILATED_TAP(w, w->dilation_h, w->dilation_w, to[o] += from[i] * by[tap])
            }
        }
}

void REFERENCE(convolve_backward_weight)(const kernel_run *run, const void *args)
{
    const op_convolve_backward_weight *p = args;
    const operation_window *w = &p->window;
    const real *x = p->x.at, *dy = p->dy.at;
    real *dweight = p->dweight.at, *dbias = p->dbias.at;
    (void)run;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, taps = w->kernel_h * w->kernel_w;
    if (!p->accumulate) {
        memset(dweight, 0, window_weights(w) * sizeof *dweight);
        if (dbias)
            memset(dbias, 0, w->out_channels * sizeof *dbias);
    }
    for (size_t b = 0; b < w->batch; b++)
        for (size_t m = 0; m < w->out_channels; m++) {
            const real *by = dy + (b * w->out_channels + m) * out;
            for (size_t o = 0; dbias && o < out; o++)
                dbias[m] += by[o];
            for (size_t c = 0; c < w->in_channels / w->groups; c++) {
                plane_pair pair = pair_planes(w, b, m, c);
                const real *from = x + pair.in * in;
                real *to = dweight + pair.kernel * taps;
                EACH_DILATED_TAP(w, w->dilation_h, w->dilation_w, to[tap] += from[i] * by[o])
            }
        }
}

void REFERENCE(convolve_backward_input)(const kernel_run *run, const void *args)
{
    const op_convolve_backward_input *p = args;
    const operation_window *w = &p->window;
    const real *weight = p->weight.at, *dy = p->dy.at;
    real *dx = p->dx.at;
    (void)run;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, taps = w->kernel_h * w->kernel_w;
    if (!p->accumulate)
        memset(dx, 0, w->batch * w->in_channels * in * sizeof *dx);
    for (size_t b = 0; b < w->batch; b++)
        for (size_t m = 0; m < w->out_channels; m++)
            for (size_t c = 0; c < w->in_channels / w->groups; c++) {
                plane_pair pair = pair_planes(w, b, m, c);
                const real *from = dy + pair.out * out, *by = weight + pair.kernel * taps;
                real *to = dx + pair.in * in;
                EACH_DILATED_TAP(w, w->dilation_h, w->dilation_w, to[i] += from[o] * by[tap])
            }
}

/* `chosen` is a position in the plane of one channel. Where a window lies in the padding altogether it is -1, and y is
 * 0. */
/* The position of the largest value in the window of an output; -1: none is in the image. */
static int32_t largest_in(const operation_window *w, const real *from, size_t row, size_t column)
{
    int32_t best = -1;
    for (size_t ky = 0; ky < w->kernel_h; ky++)
        for (size_t kx = 0; kx < w->kernel_w; kx++) {
            size_t y, x;
            if (!position(row, w->stride_h, ky, w->pad_h, w->in_h, &y) ||
                !position(column, w->stride_w, kx, w->pad_w, w->in_w, &x))
                continue;
            const size_t i = y * w->in_w + x;
            if (best < 0 || from[i] > from[best] || (from[i] != from[i] && from[best] == from[best]))
                best = (int32_t)i;
        }
    return best;
}

/* Sets one choice in the row that begins at `packed`. */
static void set_tap(const operation_window *w, uint8_t *packed, size_t column, size_t tap)
{
    const unsigned bits = operation_chosen_bits(w);
    const size_t at = column * bits;
    packed[at / 8] = (uint8_t)((packed[at / 8] & ~(((1u << bits) - 1) << at % 8)) | (unsigned)tap << at % 8);
}

void REFERENCE(pool_max)(const kernel_run *run, const void *args)
{
    const op_pool_max *p = args;
    const operation_window *w = &p->window;
    real *y = p->y.at;
    (void)run;
    for (size_t line = 0; line < w->batch * w->in_channels * w->out_h; line++) {
        const size_t row = line % w->out_h, in = w->in_h * w->in_w;
        const real *from = (const real *)p->x.at + line / w->out_h * in;
        for (size_t column = 0; column < w->out_w; column++) {
            const size_t o = line * w->out_w + column;
            const int32_t best = largest_in(w, from, row, column);
            if (y)
                y[o] = best < 0 ? 0 : from[best];
            if (p->chosen.type == REMAT_INT32) {
                ((int32_t *)p->chosen.at)[o] = best;
                continue;
            }
            const size_t above = (size_t)best / w->in_w + w->pad_h - row * w->stride_h;
            const size_t left = (size_t)best % w->in_w + w->pad_w - column * w->stride_w;
            set_tap(w, (uint8_t *)p->chosen.at + line * operation_chosen_row(w), column, above * w->kernel_w + left);
        }
    }
}

void REFERENCE(pool_max_backward)(const kernel_run *run, const void *args)
{
    const op_pool_max_backward *p = args;
    const operation_window *w = &p->window;
    const real *dy = p->dy.at;
    real *dx = p->dx.at;
    (void)run;
    size_t in = w->in_h * w->in_w;
    chosen_places places;
    chosen_find_places(w, places);
    if (!p->accumulate)
        memset(dx, 0, w->batch * w->in_channels * in * sizeof *dx);
    for (size_t line = 0; line < w->batch * w->in_channels * w->out_h; line++)
        for (size_t column = 0; column < w->out_w; column++) {
            const size_t o = line * w->out_w + column;
            const uint8_t *packed = (const uint8_t *)p->chosen.at + line * operation_chosen_row(w);
            const ptrdiff_t place = p->chosen.type == REMAT_INT32
                                        ? ((const int32_t *)p->chosen.at)[o]
                                        : chosen_position(w, places, packed, line % w->out_h, column);
            if (place >= 0)
                dx[line / w->out_h * in + (size_t)place] += dy[o];
        }
}

/* How many taps of output `out` are inside the image, along one axis. */
static size_t inside(size_t out, size_t stride, size_t kernel, size_t pad, size_t size)
{
    size_t count = 0, at;
    for (size_t tap = 0; tap < kernel; tap++)
        count += position(out, stride, tap, pad, size, &at);
    return count;
}

static real share(const operation_window *w, size_t o, size_t counted_h, size_t counted_w)
{
    size_t y = o / w->out_w, x = o % w->out_w;
    size_t high = inside(y, w->stride_h, w->kernel_h, w->pad_h, w->in_h);
    size_t wide = inside(x, w->stride_w, w->kernel_w, w->pad_w, w->in_w);
    size_t count = window_counted(y, w->stride_h, w->kernel_h, counted_h, high) *
                   window_counted(x, w->stride_w, w->kernel_w, counted_w, wide);
    return count ? (real)1 / (real)count : 0;
}

void REFERENCE(pool_average)(const kernel_run *run, const void *args)
{
    const op_pool_average *p = args;
    const operation_window *w = &p->window;
    const real *x = p->x.at;
    real *y = p->y.at;
    (void)run;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w;
    for (size_t plane = 0; plane < w->batch * w->in_channels; plane++) {
        const real *from = x + plane * in;
        real *to = y + plane * out;
        memset(to, 0, out * sizeof *to);
        EACH_TAP(w, {
            (void)tap;
            to[o] += from[i];
        })
        for (size_t o = 0; o < out; o++)
            to[o] *= share(w, o, p->counted_h, p->counted_w);
    }
}

void REFERENCE(pool_average_backward)(const kernel_run *run, const void *args)
{
    const op_pool_average_backward *p = args;
    const operation_window *w = &p->window;
    const real *dy = p->dy.at;
    real *dx = p->dx.at;
    (void)run;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w;
    if (!p->accumulate)
        memset(dx, 0, w->batch * w->in_channels * in * sizeof *dx);
    for (size_t plane = 0; plane < w->batch * w->in_channels; plane++) {
        const real *from = dy + plane * out;
        real *to = dx + plane * in;
        EACH_TAP(w, {
            (void)tap;
            to[i] += from[o] * share(w, o, p->counted_h, p->counted_w);
        })
    }
}
