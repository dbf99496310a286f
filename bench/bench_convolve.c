/* Time of convolutions, their gradients, pooling and batch normalisation, for shapes of small image nets.
 *     bench_convolve [threads]   (2 unless told)
 * Medians in milliseconds, and the rate of the convolutions in multiply-adds. */
#include "backend/cpu/kernels.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 21

/* A net's layer, square images and kernels. */
typedef struct shape {
    size_t batch, in_channels, size, out_channels, kernel, stride, pad;
} shape;

static const shape shapes[] = {
    {64, 1, 28, 16, 3, 1, 1},  {64, 16, 14, 32, 3, 1, 1},  {64, 32, 7, 64, 3, 1, 1},  {64, 1, 28, 6, 5, 1, 0},
    {64, 6, 12, 16, 5, 1, 0},  {64, 3, 32, 32, 3, 1, 1},   {64, 32, 32, 32, 3, 1, 1}, {64, 32, 16, 64, 3, 1, 1},
    {64, 64, 16, 64, 3, 1, 1}, {64, 16, 32, 16, 3, 1, 1},  {64, 16, 32, 32, 3, 2, 1}, {64, 32, 16, 32, 3, 1, 1},
    {64, 64, 8, 64, 3, 1, 1},  {64, 16, 32, 32, 1, 2, 0},  {64, 64, 16, 64, 1, 1, 0}, {8, 64, 56, 64, 3, 1, 1},
    {8, 3, 224, 32, 7, 2, 3},  {8, 128, 28, 128, 3, 1, 1},
};

static kernel_window window_of(shape s, size_t kernel, size_t stride, size_t pad, size_t out_channels)
{
    size_t out = (s.size + 2 * pad - kernel) / stride + 1;
    return (kernel_window){s.batch, s.in_channels, s.size, s.size, out_channels, out, out,
                           kernel,  kernel,        stride, stride, pad,          pad};
}

/* Everything one shape needs; values of no meaning but of usual size. */
typedef struct data {
    float *x, *dx, *y, *dy, *weight, *dweight, *bias, *workspace;
    int32_t *chosen;
} data;

static float *make(size_t count)
{
    float *values = malloc((count ? count : 1) * sizeof *values);
    if (!values)
        exit(1);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    return values;
}

typedef enum operation { FORWARD, WEIGHT, INPUT, POOL, POOL_BACK, NORM, NORM_BACK } operation;

static void perform(operation what, const kernel_table *table, const kernel_run *run, const kernel_window *w, data *d)
{
    size_t area = w->in_h * w->in_w;
    float *m = d->bias, *r = d->workspace; /* some values for each channel */
    switch (what) {
    case FORWARD: table->convolve(run, w, d->x, d->weight, d->bias, d->y, d->workspace); break;
    case WEIGHT: table->convolve_backward_weight(run, w, d->x, d->dy, d->dweight, d->bias, false, d->workspace); break;
    case INPUT: table->convolve_backward_input(run, w, d->weight, d->dy, d->dx, false, d->workspace); break;
    case POOL: table->pool_max(run, w, d->x, d->y, d->chosen); break;
    case POOL_BACK: table->pool_max_backward(run, w, d->chosen, d->dy, d->dx, false); break;
    case NORM:
        table->batch_statistics(run, w->batch, w->in_channels, area, 1e-5f, d->x, m, r, 0.1f, NULL, NULL);
        table->batch_normalize(run, w->batch, w->in_channels, area, d->x, m, r, m, m, d->dx);
        break;
    case NORM_BACK:
        table->batch_normalize_backward(run, w->batch, w->in_channels, area, d->x, m, r, m, d->x, d->dx, false,
                                        d->dweight, d->dweight + w->in_channels, false);
        break;
    }
}

static double median(operation what, const kernel_table *table, const kernel_run *run, const kernel_window *w, data *d)
{
    double times[ROUNDS];
    perform(what, table, run, w, d);
    for (int i = 0; i < ROUNDS; i++) {
        double start = measure_now();
        perform(what, table, run, w, d);
        times[i] = measure_now() - start;
    }
    return measure_median(times, ROUNDS);
}

static void measure(const kernel_table *table, const kernel_run *run, shape s)
{
    kernel_window w = window_of(s, s.kernel, s.stride, s.pad, s.out_channels);
    kernel_window pool = window_of(s, 2, 2, 0, s.in_channels);
    size_t in = s.batch * s.in_channels * s.size * s.size, out = w.batch * w.out_channels * w.out_h * w.out_w;
    size_t most = in > out ? in : out, weights = s.out_channels * s.in_channels * s.kernel * s.kernel;
    data d = {make(in),
              make(in),
              make(most),
              make(most),
              make(weights),
              make(weights + 2 * in),
              make(s.out_channels + s.in_channels),
              make(window_workspace(&w) + s.in_channels),
              malloc(most * sizeof(int32_t))};
    if (!d.chosen)
        exit(1);
    double work = (double)out * (double)(s.in_channels * s.kernel * s.kernel);
    printf("%2zu x %3zu x %3zu -> %3zu, %zux%zu/%zu", s.batch, s.in_channels, s.size, s.out_channels, s.kernel,
           s.kernel, s.stride);
    for (operation what = FORWARD; what <= INPUT; what++) {
        double time = median(what, table, run, &w, &d);
        printf(" %8.3f (%5.1f G/s)", 1e3 * time, 1e-9 * work / time);
    }
    for (operation what = POOL; what <= NORM_BACK; what++)
        printf(" %8.3f", 1e3 * median(what, table, run, what < NORM ? &pool : &w, &d));
    printf("\n");
    float *all[] = {d.x, d.dx, d.y, d.dy, d.weight, d.dweight, d.bias, d.workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(d.chosen);
}

int main(int count, char **arguments)
{
    const kernel_table *table = kernels_fast();
    kernel_run run = {count > 1 ? atoi(arguments[1]) : 2, NULL};
    if (run.threads < 1 || !(run.scratch = aligned_alloc(64, (size_t)run.threads * table->scratch_bytes)))
        return 1;
    printf("%s, %d threads\n%-30s%19s%20s%20s%9s%9s%9s%9s\n", table->name, run.threads, "shape", "convolve", "weight",
           "input", "pool", "back", "norm", "back");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(table, &run, shapes[i]);
    free(run.scratch);
    return 0;
}
