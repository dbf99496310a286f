/* Time of convolutions, their gradients, pooling and batch normalisation, for shapes of small image nets.
 *     bench_convolve [threads]   (2 unless told)
 * Medians in milliseconds, and the rate of the convolutions in multiply-adds. */
#include "backend/cpu/kernel.h"
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

static operation_window window_of(shape s, size_t kernel, size_t stride, size_t pad, size_t out_channels)
{
    size_t out = (s.size + 2 * pad - kernel) / stride + 1;
    return (operation_window){s.batch, s.in_channels, s.size, s.size, out_channels, out, out, kernel,
                              kernel,  stride,        stride, pad,    pad,          1,   1,   1};
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

typedef enum work { FORWARD, WEIGHT, INPUT, POOL, POOL_BACK, NORM, NORM_BACK } work;

static tensor_ref fp32(float *at)
{
    return (tensor_ref){at, REMAT_FP32};
}

static void perform(const kernel_table *table, const kernel_run *run, operation op, const char *types, const void *args)
{
    kernel_find(table, op, types)->run(run, args);
}

static void work_on(work what, const kernel_table *table, const kernel_run *run, const operation_window *w, data *d)
{
    size_t area = w->in_h * w->in_w, batch = w->batch, channels = w->in_channels;
    tensor_ref x = fp32(d->x), dx = fp32(d->dx), y = fp32(d->y), dy = fp32(d->dy), weight = fp32(d->weight);
    tensor_ref dweight = fp32(d->dweight), bias = fp32(d->bias), workspace = {d->workspace, REMAT_UINT8};
    tensor_ref chosen = {d->chosen, REMAT_INT32}, means = bias, scales = fp32(d->workspace);
    switch (what) {
    case FORWARD: perform(table, run, OP_convolve, "ffffu", &(op_convolve){x, weight, bias, y, workspace, *w}); break;
    case WEIGHT:
        perform(table, run, OP_convolve_backward_weight, "ffffu",
                &(op_convolve_backward_weight){x, dy, dweight, bias, workspace, *w, false});
        break;
    case INPUT:
        perform(table, run, OP_convolve_backward_input, "fffu",
                &(op_convolve_backward_input){weight, dy, dx, workspace, *w, false});
        break;
    case POOL: perform(table, run, OP_pool_max, "ffi", &(op_pool_max){x, y, chosen, *w}); break;
    case POOL_BACK:
        perform(table, run, OP_pool_max_backward, "iff", &(op_pool_max_backward){chosen, dy, dx, *w, false});
        break;
    case NORM:
        perform(table, run, OP_batch_statistics, "fff--",
                &(op_batch_statistics){x, means, scales, TENSOR_NONE, TENSOR_NONE, batch, channels, area, 1e-5, 0.1});
        perform(table, run, OP_batch_normalize, "ffffff",
                &(op_batch_normalize){x, means, scales, means, means, dx, batch, channels, area});
        break;
    case NORM_BACK:
        perform(table, run, OP_batch_normalize_backward, "ffffffff",
                &(op_batch_normalize_backward){x, means, scales, means, x, dx, dweight, tensor_from(dweight, channels),
                                               batch, channels, area, false, false});
        break;
    }
}

static double median(work what, const kernel_table *table, const kernel_run *run, const operation_window *w, data *d)
{
    double times[ROUNDS];
    work_on(what, table, run, w, d);
    for (int i = 0; i < ROUNDS; i++) {
        double start = measure_now();
        work_on(what, table, run, w, d);
        times[i] = measure_now() - start;
    }
    return measure_median(times, ROUNDS);
}

/* The three convolutions need the same workspace. */
static size_t workspace_values(const operation_window *w)
{
    const op_convolve forward = {.window = *w};
    return kernel_workspace(OP_convolve, &forward) / sizeof(float);
}

static void measure(const kernel_table *table, const kernel_run *run, shape s)
{
    operation_window w = window_of(s, s.kernel, s.stride, s.pad, s.out_channels);
    operation_window pool = window_of(s, 2, 2, 0, s.in_channels);
    size_t in = s.batch * s.in_channels * s.size * s.size, out = w.batch * w.out_channels * w.out_h * w.out_w;
    size_t most = in > out ? in : out, weights = s.out_channels * s.in_channels * s.kernel * s.kernel;
    data d = {make(in),
              make(in),
              make(most),
              make(most),
              make(weights),
              make(weights + 2 * in),
              make(s.out_channels + s.in_channels),
              make(workspace_values(&w) + s.in_channels),
              malloc(most * sizeof(int32_t))};
    if (!d.chosen)
        exit(1);
    double multiplications = (double)out * (double)(s.in_channels * s.kernel * s.kernel);
    printf("%2zu x %3zu x %3zu -> %3zu, %zux%zu/%zu", s.batch, s.in_channels, s.size, s.out_channels, s.kernel,
           s.kernel, s.stride);
    for (work what = FORWARD; what <= INPUT; what++) {
        double time = median(what, table, run, &w, &d);
        printf(" %8.3f (%5.1f G/s)", 1e3 * time, 1e-9 * multiplications / time);
    }
    for (work what = POOL; what <= NORM_BACK; what++)
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
