#include "backend/cpu/reference.h"

#include <tgmath.h>

static void normalize_rows(const void *args, parallel_range range)
{
    const op_normalize *p = args;
    const size_t columns = p->columns;
    const real epsilon = (real)p->epsilon, *gain = p->gain.at, *shift = p->shift.at;
    real *y = p->y.at, *means = p->means.at, *scales = p->scales.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const real *in = (const real *)p->x.at + row * columns;
        double mean = 0, variance = 0;
        for (size_t i = 0; means && i < columns; i++)
            mean += (double)in[i];
        mean /= (double)columns;
        for (size_t i = 0; i < columns; i++)
            variance += ((double)in[i] - mean) * ((double)in[i] - mean);
        variance /= (double)columns;
        real scale = (real)(1 / sqrt(variance + (double)epsilon));
        for (size_t i = 0; y && i < columns; i++)
            y[row * columns + i] = (in[i] - (real)mean) * scale * gain[i] + (shift ? shift[i] : 0);
        if (means)
            means[row] = (real)mean;
        scales[row] = scale;
    }
}

void REFERENCE(normalize)(const kernel_run *run, const void *args)
{
    const op_normalize *p = args;
    if (p->columns)
        parallel_static(run->threads, p->rows, normalize_rows, p);
}

/* With the normalised n = (x - mean) * scale and g = dy * gain:
 *     dx = scale * (g - average(g) - n * average(g * n)),  dgain = sum of dy * n,  dshift = sum of dy,
 * without average(g) where the rows are not centred. */
static void input_gradient(size_t columns, const real *x, const real *gain, real mean, real scale, bool centred,
                           const real *dy, real *dx, bool accumulate)
{
    double average = 0, slope = 0;
    for (size_t i = 0; i < columns; i++) {
        double g = (double)dy[i] * (double)gain[i], n = ((double)x[i] - (double)mean) * (double)scale;
        average += centred ? g : 0;
        slope += g * n;
    }
    average /= (double)columns;
    slope /= (double)columns;
    for (size_t i = 0; i < columns; i++) {
        real n = (x[i] - mean) * scale;
        real value = scale * (dy[i] * gain[i] - (real)average - n * (real)slope);
        dx[i] = accumulate ? dx[i] + value : value;
    }
}

/* The gradients of gain and shift. */
static void parameter_gradients(const void *args, parallel_range range)
{
    const op_normalize_backward *p = args;
    const size_t rows = p->rows, columns = p->columns;
    const real *x = p->x.at, *means = p->means.at, *scales = p->scales.at, *dy = p->dy.at;
    real *dgain = p->dgain.at, *dshift = p->dshift.at;
    for (size_t i = range.begin; i < range.end; i++) {
        double gain_sum = 0, shift_sum = 0;
        for (size_t row = 0; row < rows; row++) {
            double d = (double)dy[row * columns + i], mean = means ? (double)means[row] : 0;
            gain_sum += d * ((double)x[row * columns + i] - mean) * (double)scales[row];
            shift_sum += d;
        }
        if (dgain)
            dgain[i] = (real)((p->accumulate_parameters ? (double)dgain[i] : 0) + gain_sum);
        if (dshift)
            dshift[i] = (real)((p->accumulate_parameters ? (double)dshift[i] : 0) + shift_sum);
    }
}

static void input_gradients(const void *args, parallel_range range)
{
    const op_normalize_backward *p = args;
    const size_t columns = p->columns;
    const real *x = p->x.at, *gain = p->gain.at, *means = p->means.at, *scales = p->scales.at, *dy = p->dy.at;
    real *dx = p->dx.at;
    for (size_t row = range.begin; row < range.end; row++) {
        size_t from = row * columns;
        input_gradient(columns, x + from, gain, means ? means[row] : 0, scales[row], means != NULL, dy + from,
                       dx + from, p->accumulate);
    }
}

void REFERENCE(normalize_backward)(const kernel_run *run, const void *args)
{
    const op_normalize_backward *p = args;
    parallel_static(run->threads, p->columns, parameter_gradients, p); /* first, because dx may overlap dy */
    if (p->dx.at)
        parallel_static(run->threads, p->rows, input_gradients, p);
}
