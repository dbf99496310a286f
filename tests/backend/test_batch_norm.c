/* Batch normalisation: the fast tables against the reference, the reference against sums written here anew. */
#include "support/kernel_compare.h"

#include <math.h>

typedef struct problem {
    size_t batch, channels, area;
    float *x, *y, *dy, *dx, *gain, *shift;
    float *means, *scales, *running_mean, *running_variance, *dgain, *dshift;
    bool accumulate;
} problem;

static size_t size_of(const problem *p)
{
    return p->batch * p->channels * p->area;
}

static problem problem_open(size_t batch, size_t channels, size_t area, double centre, test_random *random)
{
    problem p = {.batch = batch, .channels = channels, .area = area};
    float **images[] = {&p.y, &p.dy, &p.dx};
    float **vectors[] = {&p.gain,  &p.shift, &p.means, &p.scales, &p.running_mean, &p.running_variance,
                         &p.dgain, &p.dshift};
    p.x = values_random(random, size_of(&p), centre - 1, centre + 1);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        *images[i] = values_random(random, size_of(&p), -1, 1);
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = values_random(random, channels, 0.5, 1.5);
    return p;
}

static void problem_close(problem *p)
{
    float *all[] = {p->x,     p->y,     p->dy,     p->dx,           p->gain,
                    p->shift, p->means, p->scales, p->running_mean, p->running_variance,
                    p->dgain, p->dshift};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static op_batch_statistics statistics_of(const problem *p)
{
    return (op_batch_statistics){.x = fp32(p->x),
                                 .means = fp32(p->means),
                                 .scales = fp32(p->scales),
                                 .running_mean = p->accumulate ? fp32(p->running_mean) : TENSOR_NONE,
                                 .running_variance = p->accumulate ? fp32(p->running_variance) : TENSOR_NONE,
                                 .batch = p->batch,
                                 .channels = p->channels,
                                 .area = p->area,
                                 .epsilon = 1e-5,
                                 .momentum = 0.1};
}

static op_batch_normalize normalize_of(const problem *p)
{
    return (op_batch_normalize){fp32(p->x), fp32(p->means), fp32(p->scales), fp32(p->gain), fp32(p->shift),
                                fp32(p->y), p->batch,       p->channels,     p->area};
}

static op_batch_normalize_backward backward_of(const problem *p)
{
    return (op_batch_normalize_backward){.x = fp32(p->x),
                                         .means = fp32(p->means),
                                         .scales = fp32(p->scales),
                                         .gain = fp32(p->gain),
                                         .dy = fp32(p->dy),
                                         .dx = fp32(p->dx),
                                         .dgain = fp32(p->dgain),
                                         .dshift = fp32(p->dshift),
                                         .batch = p->batch,
                                         .channels = p->channels,
                                         .area = p->area,
                                         .accumulate = p->accumulate,
                                         .accumulate_parameters = p->accumulate};
}

static void statistics(const kernel_table *table, const kernel_run *run, const problem *p)
{
    op_batch_statistics args = statistics_of(p);
    perform(table, run, OP_batch_statistics, &args);
}

static void normalize(const kernel_table *table, const kernel_run *run, const problem *p)
{
    op_batch_normalize args = normalize_of(p);
    perform(table, run, OP_batch_normalize, &args);
}

static void backward(const kernel_table *table, const kernel_run *run, const problem *p)
{
    op_batch_normalize_backward args = backward_of(p);
    perform(table, run, OP_batch_normalize_backward, &args);
}

static void compare(size_t batch, size_t channels, size_t area, double centre, test_random *random)
{
    problem p = problem_open(batch, channels, area, centre, random);
    size_t size = size_of(&p);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        p.accumulate = accumulate;
        op_batch_statistics of_batch = statistics_of(&p);
        op_batch_normalize to_normalize = normalize_of(&p);
        op_batch_normalize_backward backwards = backward_of(&p);
        kernel_trial trial = {.op = OP_batch_statistics,
                              .args = &of_batch,
                              .outputs = {{p.means, channels},
                                          {p.scales, channels},
                                          {p.running_mean, channels},
                                          {p.running_variance, channels}},
                              .absolute = 1e-5,
                              .relative = 1e-5};
        if (batch * area > 1) /* the deviation of a single value is epsilon's alone */
            expect_agreement(&trial);
        const kernel_run run = {1, NULL};
        statistics(kernels_reference(), &run, &p);
        kernel_trial forward = {.op = OP_batch_normalize,
                                .args = &to_normalize,
                                .outputs = {{p.y, size}},
                                .absolute = 1e-5,
                                .relative = 1e-5};
        expect_agreement(&forward);
        kernel_trial back = {.op = OP_batch_normalize_backward,
                             .args = &backwards,
                             .outputs = {{p.dx, size}, {p.dgain, channels}, {p.dshift, channels}},
                             .absolute = 1e-4,
                             .relative = 1e-5};
        expect_agreement(&back);
    }
    problem_close(&p);
}

static void tables_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t areas[] = {1, 2, 7, 15, 16, 17, 49, 64, 100, 784};
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        for (size_t batch = 2; batch < 40; batch = batch * 3 - 1)
            compare(batch, 1 + batch % 7, areas[i], 0, &random);
    compare(2, 3, 10000, 0, &random); /* more than a block */
    compare(1, 5, 64, 0, &random);    /* one image */
    compare(64, 40, 1, 0, &random);   /* behind a dense layer */
    compare(300, 100, 1, 2, &random);
    compare(16, 8, 196, 50, &random); /* far from 0: squares without a mean taken off would be lost */
}

/* Areas shorter than a vector and a little longer, with channels that fill panels and that do not. */
static void small_areas_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t channels[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 85, 86, 255, 256, 257, 600};
    for (size_t area = 1; area < 18; area++)
        for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
            compare(6 + (area + i) % 5, channels[i], area, 0, &random);
    for (size_t batch = 1; batch < 9; batch++)
        compare(batch * 16, 40, 1 + batch % 3, 0, &random);
    compare(70, 600, 1, 50, &random); /* far from 0, and more rows than a task takes */
    compare(130, 70, 3, -50, &random);
}

/* All in double, from the formulas. */
static void against_formulas(void **state)
{
    (void)state;
    test_random random = random_open();
    const kernel_run run = {1, NULL};
    problem p = problem_open(3, 2, 5, 1, &random);
    float *mean_before = values_copy(p.running_mean, p.channels);
    float *variance_before = values_copy(p.running_variance, p.channels);
    p.accumulate = true;
    statistics(kernels_reference(), &run, &p);
    normalize(kernels_reference(), &run, &p);
    for (size_t c = 0; c < p.channels; c++) {
        double mean = 0, variance = 0, n = (double)(p.batch * p.area);
        for (size_t i = 0; i < size_of(&p); i++)
            mean += i / p.area % p.channels == c ? (double)p.x[i] / n : 0;
        for (size_t i = 0; i < size_of(&p); i++)
            variance += i / p.area % p.channels == c ? pow((double)p.x[i] - mean, 2) / n : 0;
        expect_near(p.means[c], mean, 1e-6);
        expect_near(p.scales[c], 1 / sqrt(variance + 1e-5), 1e-5);
        expect_near(p.running_mean[c], 0.9 * (double)mean_before[c] + 0.1 * mean, 1e-6);
        expect_near(p.running_variance[c], 0.9 * (double)variance_before[c] + 0.1 * variance * n / (n - 1), 1e-6);
        for (size_t i = 0; i < size_of(&p); i++)
            if (i / p.area % p.channels == c)
                expect_near(p.y[i],
                            ((double)p.x[i] - mean) / sqrt(variance + 1e-5) * (double)p.gain[c] + (double)p.shift[c],
                            1e-5);
    }
    free(mean_before);
    free(variance_before);
    problem_close(&p);
}

/* The sum of dy * y in training, in double. */
static double loss(const problem *p, const double *x, const double *gain, const double *shift)
{
    double total = 0, n = (double)(p->batch * p->area);
    for (size_t c = 0; c < p->channels; c++) {
        double mean = 0, variance = 0;
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < p->area; i++)
                mean += x[(b * p->channels + c) * p->area + i] / n;
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < p->area; i++)
                variance += pow(x[(b * p->channels + c) * p->area + i] - mean, 2) / n;
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < p->area; i++) {
                size_t at = (b * p->channels + c) * p->area + i;
                total += ((x[at] - mean) / sqrt(variance + 1e-5) * gain[c] + shift[c]) * (double)p->dy[at];
            }
    }
    return total;
}

static double *widen(const float *from, size_t count)
{
    double *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)from[i];
    return values;
}

static void expect_slopes(const problem *p, const double *x, const double *gain, const double *shift, double *along,
                          size_t count, const float *gradient)
{
    const double step = 1e-4;
    for (size_t i = 0; i < count; i++) {
        double here = along[i];
        along[i] = here + step;
        double up = loss(p, x, gain, shift);
        along[i] = here - step;
        double down = loss(p, x, gain, shift);
        along[i] = here;
        expect_near(gradient[i], (up - down) / (2 * step), 2e-5 * (1 + fabs((double)gradient[i])));
    }
}

static void reference_has_the_right_gradients(void **state)
{
    (void)state;
    test_random random = random_open();
    const kernel_run run = {1, NULL};
    for (size_t area = 1; area < 6; area += 2) {
        problem p = problem_open(4, 3, area, 0, &random);
        statistics(kernels_reference(), &run, &p);
        backward(kernels_reference(), &run, &p);
        double *x = widen(p.x, size_of(&p)), *gain = widen(p.gain, p.channels), *shift = widen(p.shift, p.channels);
        expect_slopes(&p, x, gain, shift, gain, p.channels, p.dgain);
        expect_slopes(&p, x, gain, shift, shift, p.channels, p.dshift);
        bool steep = false; /* values that happen to lie close together have slopes too steep for differences */
        for (size_t c = 0; c < p.channels; c++)
            steep |= p.scales[c] > 5;
        if (!steep)
            expect_slopes(&p, x, gain, shift, x, size_of(&p), p.dx);
        free(x);
        free(gain);
        free(shift);
        problem_close(&p);
    }
}

/* Results over their inputs: y over x, dx over dy. And no dx at all. */
static void in_place(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t areas[] = {1, 3, 100};
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
            kernel_run run = kernel_run_open(*table, 2);
            problem p = problem_open(9, 37, areas[i], 0, &random);
            size_t size = size_of(&p);
            statistics(*table, &run, &p);
            normalize(*table, &run, &p);
            backward(*table, &run, &p);
            float *x = values_copy(p.x, size), *dy = values_copy(p.dy, size);
            float *dgain = values_copy(p.dgain, p.channels), *dshift = values_copy(p.dshift, p.channels);
            op_batch_normalize over_x = normalize_of(&p);
            over_x.x = over_x.y = fp32(x);
            perform(*table, &run, OP_batch_normalize, &over_x);
            expect_same_bits(x, p.y, size);
            op_batch_normalize_backward over_dy = backward_of(&p), without_dx = over_dy;
            over_dy.dy = over_dy.dx = fp32(dy);
            without_dx.dx = TENSOR_NONE;
            perform(*table, &run, OP_batch_normalize_backward, &over_dy);
            expect_same_bits(dy, p.dx, size);
            perform(*table, &run, OP_batch_normalize_backward, &without_dx);
            expect_same_bits(p.dgain, dgain, p.channels);
            expect_same_bits(p.dshift, dshift, p.channels);
            free(x);
            free(dy);
            free(dgain);
            free(dshift);
            problem_close(&p);
            kernel_run_close(&run);
        }
}

/* To the bit, in every instruction set. */
static void scales_are_those_of_the_variance(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *variance = values_random(&random, *size, 0, 3), *scales = values_random(&random, *size, 0, 1);
        op_batch_scales args = {fp32(variance), fp32(scales), *size, 1e-5};
        expect_agreement(&((kernel_trial){.op = OP_batch_scales, .args = &args, .outputs = {{scales, *size}}}));
        kernel_run run = {1, NULL};
        perform(kernels_reference(), &run, OP_batch_scales, &args);
        for (size_t i = 0; i < *size; i++)
            expect_near(scales[i], 1 / sqrt((double)variance[i] + 1e-5), 1e-6 * (double)scales[i]);
        free(variance);
        free(scales);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_agree),     cmocka_unit_test(small_areas_agree),
        cmocka_unit_test(against_formulas), cmocka_unit_test(reference_has_the_right_gradients),
        cmocka_unit_test(in_place),         cmocka_unit_test(scales_are_those_of_the_variance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
