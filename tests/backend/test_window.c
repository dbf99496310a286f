/* Convolution and pooling: the fast tables against the reference, the reference against sums written here anew. */
#include "support/device_kernels.h"
#include "support/kernel_compare.h"

#include <math.h>
#include <string.h>

/* batch; channels, height, width; channels; kernel; stride; padding; groups; dilation. The output's size follows. */
typedef struct layer {
    size_t batch, in_channels, in_h, in_w, out_channels, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
    size_t groups, dilation_h, dilation_w;
} layer;

static const layer layers[] = {
    {4, 1, 28, 28, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1},       /* a net's first layer */
    {4, 1, 12, 12, 1, 5, 5, 1, 1, 0, 0, 1, 1, 1},       /* no padding */
    {3, 3, 11, 17, 9, 3, 5, 1, 1, 1, 2, 1, 1, 1},       /* nothing square */
    {20, 2, 7, 7, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1},       /* many small images */
    {33, 5, 4, 4, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1},        /* smaller than a vector */
    {40, 3, 1, 1, 5, 1, 1, 1, 1, 0, 0, 1, 1, 1},        /* a pixel an image */
    {2, 16, 32, 32, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1},     /* worth several threads */
    {3, 4, 16, 16, 7, 1, 1, 1, 1, 0, 0, 1, 1, 1},       /* a plain GEMM */
    {3, 4, 15, 16, 7, 1, 1, 2, 2, 0, 0, 1, 1, 1},       /* strides past the kernel */
    {3, 4, 16, 17, 7, 1, 2, 3, 3, 0, 0, 1, 1, 1},       /* past it by more */
    {5, 3, 16, 16, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1},       /* the usual stride */
    {2, 3, 17, 23, 4, 3, 4, 2, 3, 1, 2, 1, 1, 1},       /* a stride each way */
    {2, 3, 30, 30, 5, 7, 7, 2, 2, 3, 3, 1, 1, 1},       /* large kernels with a stride */
    {1, 2, 9, 9, 3, 3, 3, 5, 4, 0, 0, 1, 1, 1},         /* strides that skip */
    {2, 2, 5, 6, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},         /* even kernels */
    {2, 2, 5, 6, 3, 1, 1, 1, 1, 2, 2, 1, 1, 1},         /* padding larger than the kernel */
    {2, 2, 3, 4, 3, 3, 4, 1, 1, 0, 0, 1, 1, 1},         /* one output */
    {2, 2, 3, 3, 3, 5, 5, 1, 1, 1, 1, 1, 1, 1},         /* a kernel larger than the image */
    {1, 3, 1, 3000, 4, 1, 5, 1, 1, 0, 2, 1, 1, 1},      /* a row longer than a piece */
    {1, 2, 1, 9001, 3, 1, 9, 2, 2, 0, 4, 1, 1, 1},      /* and with a stride */
    {1, 2, 120, 90, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1},      /* more rows than a piece */
    {2, 120, 30, 40, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1},     /* more channels than fit at once */
    {1, 40, 130, 20, 2, 5, 5, 1, 1, 2, 2, 1, 1, 1},     /* more of both */
    {9, 80, 7, 7, 112, 3, 3, 1, 1, 1, 1, 1, 1, 1},      /* narrow, many channels that fill vectors */
    {9, 32, 14, 13, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1},     /* and with a stride */
    {1, 16, 60, 9, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},      /* and with more rows than a piece */
    {1, 1, 400, 410, 2, 400, 400, 1, 1, 0, 0, 1, 1, 1}, /* a kernel that does not fit */
    {0, 3, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1},         /* no images */
    {3, 8, 14, 15, 8, 3, 3, 1, 1, 1, 1, 8, 1, 1},       /* depthwise */
    {3, 6, 14, 15, 12, 3, 3, 2, 2, 1, 1, 6, 1, 1},      /* depthwise with a multiplier and a stride */
    {9, 64, 7, 7, 64, 3, 3, 1, 1, 1, 1, 64, 1, 1},      /* depthwise over small images */
    {5, 12, 9, 11, 18, 3, 3, 1, 1, 1, 1, 3, 1, 1},      /* groups */
    {4, 64, 7, 7, 64, 3, 3, 1, 1, 1, 1, 2, 1, 1},       /* groups whose outputs fill vectors */
    {2, 6, 9, 11, 9, 3, 2, 2, 1, 1, 0, 3, 2, 1},        /* groups, a stride and a dilation */
    {3, 3, 17, 19, 5, 3, 3, 1, 1, 2, 2, 1, 2, 2},       /* dilation */
    {2, 3, 17, 23, 4, 3, 4, 2, 3, 1, 2, 1, 3, 2},       /* dilation and strides that have no divisor in common */
    {2, 3, 17, 23, 4, 3, 4, 4, 6, 1, 2, 1, 6, 4},       /* and that have one */
    {2, 3, 17, 23, 4, 3, 3, 2, 2, 4, 4, 1, 4, 4},       /* a dilation that is a multiple of the stride */
    {1, 4, 1, 3000, 4, 1, 5, 1, 1, 0, 32, 1, 1, 16},    /* a long row with a wide dilation */
};

static size_t outputs(size_t in, size_t kernel, size_t stride, size_t pad, size_t dilation)
{
    return (in + 2 * pad - (dilation * (kernel - 1) + 1)) / stride + 1;
}

static operation_window window_of(layer l)
{
    return (operation_window){l.batch,
                              l.in_channels,
                              l.in_h,
                              l.in_w,
                              l.out_channels,
                              outputs(l.in_h, l.kernel_h, l.stride_h, l.pad_h, l.dilation_h),
                              outputs(l.in_w, l.kernel_w, l.stride_w, l.pad_w, l.dilation_w),
                              l.kernel_h,
                              l.kernel_w,
                              l.stride_h,
                              l.stride_w,
                              l.pad_h,
                              l.pad_w,
                              l.groups,
                              l.dilation_h,
                              l.dilation_w};
}

static layer random_layer(test_random *random)
{
    layer l = {1 + test_random_below(random, 12), 1 + test_random_below(random, 6),  1 + test_random_below(random, 20),
               1 + test_random_below(random, 40), 1 + test_random_below(random, 20), 1 + test_random_below(random, 4),
               1 + test_random_below(random, 6),  1 + test_random_below(random, 3),  1 + test_random_below(random, 4),
               test_random_below(random, 3),      test_random_below(random, 4),      1 + test_random_below(random, 4),
               1 + test_random_below(random, 3),  1 + test_random_below(random, 3)};
    l.in_channels *= l.groups;
    l.out_channels *= l.groups;
    if (l.dilation_h * (l.kernel_h - 1) >= l.in_h + 2 * l.pad_h)
        l.kernel_h = 1;
    if (l.dilation_w * (l.kernel_w - 1) >= l.in_w + 2 * l.pad_w)
        l.kernel_w = 1;
    return l;
}

/* All inputs and results of one layer. `accumulate` is tried together with no bias. */
typedef struct problem {
    operation_window w;
    size_t in, out, weights;
    float *x, *dy, *weight, *bias;
    float *y, *dweight, *dbias, *dx;
    float *chosen; /* of pooling: positions as values */
    size_t counted_h, counted_w;
    bool accumulate;
} problem;

static problem problem_open(operation_window w, test_random *random)
{
    problem p = {.w = w};
    p.in = w.batch * w.in_channels * w.in_h * w.in_w;
    p.out = w.batch * w.out_channels * w.out_h * w.out_w;
    p.weights = w.out_channels * (w.in_channels / w.groups) * w.kernel_h * w.kernel_w;
    p.x = values_random(random, p.in, -1, 1);
    p.dy = values_random(random, p.out, -1, 1);
    p.weight = values_random(random, p.weights, -1, 1);
    p.bias = values_random(random, w.out_channels, -1, 1);
    p.y = values_random(random, p.out, -1, 1);
    p.dweight = values_random(random, p.weights, -1, 1);
    p.dbias = values_random(random, w.out_channels, -1, 1);
    p.dx = values_random(random, p.in, -1, 1);
    p.chosen = values_random(random, p.out, -1, 1);
    return p;
}

static void problem_close(problem *p)
{
    float *all[] = {p->x, p->dy, p->weight, p->bias, p->y, p->dweight, p->dbias, p->dx, p->chosen};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* The workspace is full of NaN before every call: none may read what it has not written. */
static void with_workspace(const kernel_table *table, const kernel_run *run, operation op, const void *args,
                           tensor_ref *workspace)
{
    size_t bytes = kernel_workspace(op, args);
    void *memory = malloc(bytes ? bytes : 1);
    assert_non_null(memory);
    memset(memory, 0xff, bytes);
    *workspace = raw(memory);
    perform(table, run, op, args);
    free(memory);
}

static void convolve_all(const kernel_table *table, const kernel_run *run, void *task)
{
    problem *p = task;
    op_convolve forward = {.x = fp32(p->x),
                           .weight = fp32(p->weight),
                           .bias = p->accumulate ? TENSOR_NONE : fp32(p->bias),
                           .y = fp32(p->y),
                           .window = p->w};
    op_convolve_backward_weight weight = {.x = fp32(p->x),
                                          .dy = fp32(p->dy),
                                          .dweight = fp32(p->dweight),
                                          .dbias = fp32(p->dbias),
                                          .window = p->w,
                                          .accumulate = p->accumulate};
    op_convolve_backward_input input = {
        .weight = fp32(p->weight), .dy = fp32(p->dy), .dx = fp32(p->dx), .window = p->w, .accumulate = p->accumulate};
    with_workspace(table, run, OP_convolve, &forward, &forward.workspace);
    with_workspace(table, run, OP_convolve_backward_weight, &weight, &weight.workspace);
    with_workspace(table, run, OP_convolve_backward_input, &input, &input.workspace);
}

static void compare_convolutions(operation_window w, test_random *random)
{
    problem p = problem_open(w, random);
    size_t terms = w.batch * w.out_h * w.out_w; /* of a sum in float: each may lose a little */
    kernel_trial trial = {.call = convolve_all,
                          .task = &p,
                          .outputs = {{p.y, p.out}, {p.dweight, p.weights}, {p.dbias, w.out_channels}, {p.dx, p.in}},
                          .absolute = 1e-4 + 4e-8 * (double)terms,
                          .relative = 1e-4};
    if (device_kernels()) /* it adds in another order than the reference */
        trial.absolute += 4e-9 * (double)(w.in_channels * w.kernel_h * w.kernel_w);
    expect_agreement(&trial);
    p.accumulate = true;
    expect_agreement(&trial);
    problem_close(&p);
}

static void print_layer(const char *what, layer l)
{
    print_message("%s: %zu x %zu x %zu x %zu to %zu, kernel %zu x %zu, stride %zu x %zu, padding %zu x %zu\n", what,
                  l.batch, l.in_channels, l.in_h, l.in_w, l.out_channels, l.kernel_h, l.kernel_w, l.stride_h,
                  l.stride_w, l.pad_h, l.pad_w);
}

static void convolutions_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        compare_convolutions(window_of(layers[i]), &random);
}

static void random_convolutions_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int i = 0; i < 30; i++) {
        layer l = random_layer(&random);
        print_layer("layer", l);
        compare_convolutions(window_of(l), &random);
    }
}

/* ---- the reference against its definition ---- */

/* The sum of dy * y, y by gathering from a padded image, all in double. */
static double loss(const operation_window *w, const double *x, const double *weight, const double *bias,
                   const float *dy)
{
    size_t high = w->in_h + 2 * w->pad_h, wide = w->in_w + 2 * w->pad_w;
    double *padded = calloc(w->in_channels * high * wide, sizeof *padded), total = 0;
    assert_non_null(padded);
    for (size_t b = 0; b < w->batch; b++) {
        for (size_t c = 0; c < w->in_channels; c++)
            for (size_t i = 0; i < w->in_h; i++)
                for (size_t j = 0; j < w->in_w; j++)
                    padded[(c * high + i + w->pad_h) * wide + j + w->pad_w] =
                        x[((b * w->in_channels + c) * w->in_h + i) * w->in_w + j];
        for (size_t m = 0; m < w->out_channels; m++)
            for (size_t i = 0; i < w->out_h; i++)
                for (size_t j = 0; j < w->out_w; j++) {
                    double y = bias[m];
                    size_t channels = w->in_channels / w->groups, group = m / (w->out_channels / w->groups);
                    for (size_t k = 0; k < channels * w->kernel_h * w->kernel_w; k++) {
                        size_t c = group * channels + k / w->kernel_w / w->kernel_h;
                        size_t row = i * w->stride_h + k / w->kernel_w % w->kernel_h * w->dilation_h;
                        size_t column = j * w->stride_w + k % w->kernel_w * w->dilation_w;
                        y += weight[m * channels * w->kernel_h * w->kernel_w + k] *
                             padded[(c * high + row) * wide + column];
                    }
                    total += y * dy[((b * w->out_channels + m) * w->out_h + i) * w->out_w + j];
                }
    }
    free(padded);
    return total;
}

static double *widen(const float *from, size_t count)
{
    double *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = from[i];
    return values;
}

/* Central differences of the loss along every value of `along`, one of the three. */
static void expect_slopes(const char *what, const problem *p, double *x, double *weight, double *bias, double *along,
                          size_t count, const float *gradient)
{
    const double step = 1e-3;
    for (size_t i = 0; i < count; i++) {
        double here = along[i];
        along[i] = here + step;
        double up = loss(&p->w, x, weight, bias, p->dy);
        along[i] = here - step;
        double down = loss(&p->w, x, weight, bias, p->dy);
        along[i] = here;
        if (!(fabs((up - down) / (2 * step) - gradient[i]) < 1e-5 * (1 + fabs((double)gradient[i]))))
            fail_msg("%s %zu: slope %.9g, gradient %.9g", what, i, (up - down) / (2 * step), (double)gradient[i]);
    }
}

static void reference_has_the_right_gradients(void **state)
{
    (void)state;
    static const layer tiny[] = {
        {2, 2, 4, 5, 3, 3, 2, 1, 1, 1, 0, 1, 1, 1}, {2, 2, 5, 4, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1},
        {1, 3, 4, 4, 2, 1, 1, 2, 1, 0, 0, 1, 1, 1}, {1, 1, 3, 3, 2, 2, 4, 1, 3, 2, 1, 1, 1, 1},
        {2, 4, 4, 5, 6, 3, 2, 1, 1, 1, 0, 2, 1, 1}, {1, 3, 5, 5, 3, 2, 3, 1, 2, 1, 2, 3, 2, 2}};
    test_random random = random_open();
    kernel_run run = {1, NULL};
    for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
        problem p = problem_open(window_of(tiny[i]), &random);
        convolve_all(kernels_reference(), &run, &p);
        double *x = widen(p.x, p.in), *weight = widen(p.weight, p.weights), *bias = widen(p.bias, p.w.out_channels);
        double forward = 0;
        for (size_t o = 0; o < p.out; o++)
            forward += (double)p.y[o] * (double)p.dy[o];
        expect_near(forward, loss(&p.w, x, weight, bias, p.dy), 1e-4);
        expect_slopes("dx", &p, x, weight, bias, x, p.in, p.dx);
        expect_slopes("dweight", &p, x, weight, bias, weight, p.weights, p.dweight);
        expect_slopes("dbias", &p, x, weight, bias, bias, p.w.out_channels, p.dbias);
        free(x);
        free(weight);
        free(bias);
        problem_close(&p);
    }
}

/* ---- pooling ---- */

static void pool_max_all(const kernel_table *table, const kernel_run *run, void *task)
{
    problem *p = task;
    int32_t *chosen = malloc(p->out * sizeof *chosen);
    assert_non_null(chosen);
    perform(table, run, OP_pool_max, &(op_pool_max){fp32(p->x), fp32(p->y), int32(chosen), p->w});
    perform(table, run, OP_pool_max_backward,
            &(op_pool_max_backward){int32(chosen), fp32(p->dy), fp32(p->dx), p->w, p->accumulate});
    for (size_t i = 0; i < p->out; i++)
        p->chosen[i] = (float)chosen[i];
    free(chosen);
}

static bool every_window_has_a_point(const operation_window *w)
{
    return 2 * w->pad_h <= w->kernel_h && 2 * w->pad_w <= w->kernel_w &&
           (w->out_h - 1) * w->stride_h < w->in_h + w->pad_h && (w->out_w - 1) * w->stride_w < w->in_w + w->pad_w;
}

/* Choices in a few bits: the same results, from memory of exactly the size that it takes. */
static void pool_max_in_bits(const kernel_table *table, const kernel_run *run, void *task)
{
    problem *p = task;
    const size_t bytes = p->w.batch * p->w.out_channels * p->w.out_h * operation_chosen_row(&p->w);
    uint8_t *chosen = malloc(bytes);
    assert_non_null(chosen);
    memset(chosen, 0xff, bytes);
    perform(table, run, OP_pool_max, &(op_pool_max){fp32(p->x), fp32(p->y), raw(chosen), p->w});
    perform(table, run, OP_pool_max_backward,
            &(op_pool_max_backward){raw(chosen), fp32(p->dy), fp32(p->dx), p->w, p->accumulate});
    free(chosen);
}

static void compare_bits(problem *p)
{
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    if (!operation_chosen_bits(&p->w) || !every_window_has_a_point(&p->w))
        return;
    kernel_trial trial = {.call = pool_max_in_bits, .task = p, .outputs = {{p->y, p->out}, {p->dx, p->in}}};
    expect_agreement(&trial);
    for (int i = 0; i < 2; i++) {
        kernel_run run = kernel_run_open(tables[i], 2);
        float *before = values_copy(p->dx, p->in);
        pool_max_all(tables[i], &run, p);
        float *dx = values_copy(p->dx, p->in), *y = values_copy(p->y, p->out);
        memcpy(p->dx, before, p->in * sizeof *before);
        pool_max_in_bits(tables[i], &run, p);
        expect_same_bits(p->dx, dx, p->in);
        expect_same_bits(p->y, y, p->out);
        free(before);
        free(dx);
        free(y);
        kernel_run_close(&run);
    }
}

static void pool_average_all(const kernel_table *table, const kernel_run *run, void *task)
{
    problem *p = task;
    perform(table, run, OP_pool_average, &(op_pool_average){fp32(p->x), fp32(p->y), p->w, p->counted_h, p->counted_w});
    perform(table, run, OP_pool_average_backward,
            &(op_pool_average_backward){fp32(p->dy), fp32(p->dx), p->w, p->counted_h, p->counted_w, p->accumulate});
}

static void compare_pooling(problem *p)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        p->accumulate = accumulate;
        /* Padding counts together with accumulation, up to where `ceil_mode` would let windows reach beyond it. */
        p->counted_h = accumulate ? p->w.in_h + p->w.pad_h : 0;
        p->counted_w = accumulate ? p->w.in_w + 2 * p->w.pad_w : 0;
        kernel_trial largest = {
            .call = pool_max_all, .task = p, .outputs = {{p->y, p->out}, {p->dx, p->in}, {p->chosen, p->out}}};
        expect_agreement(&largest);
        compare_bits(p);
        kernel_trial average = {.call = pool_average_all,
                                .task = p,
                                .outputs = {{p->y, p->out}, {p->dx, p->in}},
                                .absolute = 1e-6,
                                .relative = 1e-6};
        expect_agreement(&average);
    }
}

static void pooling_agrees(void **state)
{
    (void)state;
    static const layer pools[] = {
        {4, 5, 28, 28, 5, 2, 2, 2, 2, 0, 0, 1, 1, 1}, {3, 2, 15, 13, 2, 2, 2, 2, 2, 0, 0, 1, 1, 1},
        {3, 2, 9, 41, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1},  {2, 3, 8, 8, 3, 8, 8, 8, 8, 0, 0, 1, 1, 1},
        {2, 3, 7, 5, 3, 3, 2, 1, 3, 1, 1, 1, 1, 1},   {2, 1, 4, 4, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1},
        {2, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, /* windows in the padding altogether */
        {9, 8, 20, 20, 8, 2, 2, 2, 2, 0, 0, 1, 1, 1}, {1, 1, 6, 6, 1, 2, 2, 3, 3, 0, 0, 1, 1, 1},
    };
    test_random random = random_open();
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        problem p = problem_open(window_of(pools[i]), &random);
        compare_pooling(&p);
        for (size_t j = 0; j < p.in; j++) /* many equals: the first counts */
            p.x[j] = (float)test_random_below(&random, 3);
        compare_pooling(&p);
        problem_close(&p);
    }
}

/* Few different values, so that many are equal; NaN and infinities among them. */
static void make_difficult(problem *p, test_random *random)
{
    static const float kinds[] = {0, -0.0f, 1, 1, 2, -1, -INFINITY, -INFINITY, NAN, 3};
    size_t most = 2 + test_random_below(random, sizeof kinds / sizeof kinds[0] - 1);
    for (size_t i = 0; i < p->in; i++)
        p->x[i] = kinds[test_random_below(random, most)];
}

static void compare_pooling_of(layer l, test_random *random)
{
    if (l.kernel_h > l.in_h + 2 * l.pad_h || l.kernel_w > l.in_w + 2 * l.pad_w)
        return;
    problem p = problem_open(window_of(l), random);
    if (test_random_below(random, 2))
        make_difficult(&p, random);
    compare_pooling(&p);
    problem_close(&p);
}

/* Widths around the lengths of vectors and twice those, with every window. */
static void pooling_of_all_widths_agrees(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 18, 19, 20, 31, 32, 33, 34, 35, 36, 63, 66};
    test_random random = random_open();
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (size_t kernel = 1; kernel < 6; kernel++)
            for (size_t stride = 1; stride < 5; stride++)
                for (size_t pad = 0; pad < 4; pad++) {
                    size_t high = 1 + test_random_below(&random, 6), kernel_h = 1 + test_random_below(&random, 4);
                    layer l = {2,      1,
                               high,   widths[i],
                               1,      kernel_h,
                               kernel, 1 + test_random_below(&random, 3),
                               stride, test_random_below(&random, 3),
                               pad,    1,
                               1,      1};
                    compare_pooling_of(l, &random);
                }
}

/* Square windows of square images as nets have them, large enough for several threads. */
static void pooling_of_squares_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t size = 26; size < 36; size += 3)
        for (size_t kernel = 2; kernel < 4; kernel++)
            for (size_t stride = 1; stride < 4; stride++)
                for (size_t pad = 0; pad < 2; pad++)
                    compare_pooling_of((layer){4, 7, size, size, 7, kernel, kernel, stride, stride, pad, pad, 1, 1, 1},
                                       &random);
}

static void pooling_of_whole_planes_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t width = 1; width < 40; width++)
        for (size_t high = 1; high < 4; high++)
            compare_pooling_of((layer){8, 3, high, width, 3, high, width, 1, 1, 0, 0, 1, 1, 1}, &random);
    compare_pooling_of((layer){3, 4, 64, 65, 4, 64, 65, 64, 65, 0, 0, 1, 1, 1}, &random);
}

/* Without y the places are the same. */
static void pooling_for_the_places_alone(void **state)
{
    (void)state;
    static const layer pools[] = {{3, 2, 15, 41, 2, 2, 2, 2, 2, 0, 0, 1, 1, 1},
                                  {3, 2, 9, 41, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1},
                                  {2, 2, 5, 7, 2, 5, 7, 1, 1, 0, 0, 1, 1, 1}};
    test_random random = random_open();
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        problem p = problem_open(window_of(pools[i]), &random);
        int32_t *want = malloc(p.out * sizeof *want), *got = malloc(p.out * sizeof *got);
        assert_non_null(want);
        assert_non_null(got);
        kernel_run run = {2, NULL};
        op_pool_max with_y = {fp32(p.x), fp32(p.y), int32(want), p.w};
        op_pool_max without_y = {fp32(p.x), TENSOR_NONE, int32(got), p.w};
        perform(kernels_reference(), &run, OP_pool_max, &with_y);
        perform(kernels_reference(), &run, OP_pool_max, &without_y);
        assert_memory_equal(got, want, p.out * sizeof *want);
        for (const kernel_table *const *table = kernel_tables(); *table; table++) {
            memset(got, 0, p.out * sizeof *got);
            perform(*table, &run, OP_pool_max, &without_y);
            assert_memory_equal(got, want, p.out * sizeof *want);
        }
        free(want);
        free(got);
        problem_close(&p);
    }
}

static void pooling_by_hand(void **state)
{
    (void)state;
    operation_window w = window_of((layer){1, 1, 2, 4, 1, 2, 2, 2, 2, 0, 0, 1, 1, 1});
    float x[8] = {1, 5, -2, -1, 5, 0, -1, -3}, y[2], dx[8], dy[2] = {10, 20};
    int32_t chosen[2];
    const kernel_table *table = kernels_reference();
    kernel_run run = {1, NULL};
    const op_pool_max pool = {fp32(x), fp32(y), int32(chosen), w};
    perform(table, &run, OP_pool_max, &pool);
    assert_true(y[0] == 5 && y[1] == -1 && chosen[0] == 1 && chosen[1] == 3);
    perform(table, &run, OP_pool_max_backward, &(op_pool_max_backward){int32(chosen), fp32(dy), fp32(dx), w, false});
    assert_true(dx[1] == 10 && dx[3] == 20 && dx[0] + dx[2] + dx[4] + dx[5] + dx[6] + dx[7] == 0);
    perform(table, &run, OP_pool_average, &(op_pool_average){fp32(x), fp32(y), w, 0, 0});
    assert_true(y[0] == 2.75f && y[1] == -1.75f);
    x[4] = NAN;
    perform(table, &run, OP_pool_max, &pool);
    assert_true(y[0] != y[0] && chosen[0] == 4);

    /* Padding does not count: the corner has one value, the middle of an edge two. */
    operation_window padded = window_of((layer){1, 1, 1, 2, 1, 1, 2, 1, 1, 0, 1, 1, 1, 1});
    float row[2] = {3, 5}, means[3], back[2], ones[3] = {1, 1, 1};
    perform(table, &run, OP_pool_average, &(op_pool_average){fp32(row), fp32(means), padded, 0, 0});
    assert_true(means[0] == 3 && means[1] == 4 && means[2] == 5);
    perform(table, &run, OP_pool_average_backward,
            &(op_pool_average_backward){fp32(ones), fp32(back), padded, 0, 0, false});
    assert_true(back[0] == 1.5f && back[1] == 1.5f);

    /* Or it does: every window has two values. */
    perform(table, &run, OP_pool_average, &(op_pool_average){fp32(row), fp32(means), padded, 1, 4});
    assert_true(means[0] == 1.5f && means[1] == 4 && means[2] == 2.5f);
    perform(table, &run, OP_pool_average_backward,
            &(op_pool_average_backward){fp32(ones), fp32(back), padded, 1, 4, false});
    assert_true(back[0] == 1 && back[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions_agree),
                                       cmocka_unit_test(random_convolutions_agree),
                                       cmocka_unit_test(reference_has_the_right_gradients),
                                       cmocka_unit_test(pooling_agrees),
                                       cmocka_unit_test(pooling_of_all_widths_agrees),
                                       cmocka_unit_test(pooling_of_squares_agrees),
                                       cmocka_unit_test(pooling_of_whole_planes_agrees),
                                       cmocka_unit_test(pooling_for_the_places_alone),
                                       cmocka_unit_test(pooling_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
