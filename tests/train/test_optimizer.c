#include "support/cases.h"

#include "train/optimizer.h"

#include <math.h>

static void expect_near(double got, double wanted, double tolerance, int line)
{
    if (fabs(got - wanted) <= tolerance)
        return;
    print_error("line %d: %.17g, not %.17g\n", line, got, wanted);
    fail();
}
#define EXPECT_RATE(settings, step, total, wanted) \
    expect_near(optimizer_rate(settings, step, total, 0), wanted, 1e-15, __LINE__)

/* ---- rates, worked out by hand ---- */

static void constant_rates(void **state)
{
    (void)state;
    optimizer_settings s = {.learning_rate = 0.4};
    EXPECT_RATE(&s, 0, 10, 0.4);
    EXPECT_RATE(&s, 1000, 10, 0.4);
    s.warmup_steps = 4;
    EXPECT_RATE(&s, 0, 10, 0.1);
    EXPECT_RATE(&s, 1, 10, 0.2);
    EXPECT_RATE(&s, 3, 10, 0.4);
    EXPECT_RATE(&s, 4, 10, 0.4);
}

static void rates_in_steps(void **state)
{
    (void)state;
    optimizer_settings s = {.learning_rate = 0.8, .schedule = RATE_STEP, .step_size = 3, .gamma = 0.5};
    EXPECT_RATE(&s, 0, 100, 0.8);
    EXPECT_RATE(&s, 2, 100, 0.8);
    EXPECT_RATE(&s, 3, 100, 0.4);
    EXPECT_RATE(&s, 6, 100, 0.2);
    s.min_rate = 0.3;
    EXPECT_RATE(&s, 6, 100, 0.3);
    s.warmup_steps = 2;
    EXPECT_RATE(&s, 0, 100, 0.4);
    EXPECT_RATE(&s, 4, 100, 0.8);
    EXPECT_RATE(&s, 5, 100, 0.4);
    s.step_size = 0;
    EXPECT_RATE(&s, 50, 100, 0.8);
}

/* PyTorch's OneCycleLR(max_lr=1, total_steps=11, pct_start=0.3, div_factor=25, final_div_factor=1e4): up to the step
 * 0.3 * 11 - 1, down to step 10. */
static void rates_of_one_cycle(void **state)
{
    (void)state;
    optimizer_settings s = {
        .learning_rate = 1, .schedule = RATE_ONE_CYCLE, .rise = 0.3, .start_divisor = 25, .end_divisor = 1e4};
    const double top = 0.3 * 11 - 1, low = 1 / 25.0, end = low / 1e4;
    EXPECT_RATE(&s, 0, 11, low);
    EXPECT_RATE(&s, 1, 11, 1 + (low - 1) * (1 + cos(M_PI / top)) / 2);
    EXPECT_RATE(&s, 3, 11, end + (1 - end) * (1 + cos(M_PI * (3 - top) / (10 - top))) / 2);
    EXPECT_RATE(&s, 10, 11, end);
    EXPECT_RATE(&s, 500, 11, end);
    s.decay_steps = 21; /* its own end */
    s.rise = 1 / 3.0;
    EXPECT_RATE(&s, 6, 100, 1);
    EXPECT_RATE(&s, 20, 100, end);
    s.rise = 0;
    EXPECT_RATE(&s, 0, 100, 1);
    EXPECT_RATE(&s, 0, 1, 1);
}

static void rates_of_a_plateau(void **state)
{
    (void)state;
    optimizer_settings s = {.learning_rate = 1,
                            .schedule = RATE_PLATEAU,
                            .gamma = 0.5,
                            .patience = 1,
                            .threshold = 0.1,
                            .min_rate = 0.2,
                            .warmup_steps = 2};
    rate_plateau plateau = {.best = INFINITY};
    static const struct {
        double loss;
        uint64_t cuts;
    } seen[] = {{4, 0}, {3.7, 0}, {3, 0}, {2.9, 0}, {2.8, 1}, {2.75, 1}, {2, 1}, {NAN, 1}, {2.5, 2}, {3, 2}, {3, 3}};
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) { /* 3.7 and 2.9 are not a tenth better than the best */
        optimizer_note_validation(&s, seen[i].loss, &plateau);
        assert_int_equal(plateau.cuts, seen[i].cuts);
    }
    assert_true(plateau.best == 2);
    expect_near(optimizer_rate(&s, 0, 10, 0), 0.5, 0, __LINE__);
    expect_near(optimizer_rate(&s, 5, 10, 0), 1, 0, __LINE__);
    expect_near(optimizer_rate(&s, 5, 10, 2), 0.25, 0, __LINE__);
    expect_near(optimizer_rate(&s, 5, 10, 3), 0.2, 0, __LINE__);
}

static void linear_rates(void **state)
{
    (void)state;
    optimizer_settings s = {.learning_rate = 1, .schedule = RATE_LINEAR};
    EXPECT_RATE(&s, 0, 10, 1);
    EXPECT_RATE(&s, 5, 10, 0.5);
    EXPECT_RATE(&s, 9, 10, 0.1);
    EXPECT_RATE(&s, 10, 10, 0);
    EXPECT_RATE(&s, 99, 10, 0);
    s.min_rate = 0.2;
    s.warmup_steps = 2;
    s.decay_steps = 6;
    EXPECT_RATE(&s, 0, 10, 0.5);
    EXPECT_RATE(&s, 2, 10, 1);
    EXPECT_RATE(&s, 4, 10, 0.6);
    EXPECT_RATE(&s, 6, 10, 0.2);
}

static void cosine_rates(void **state)
{
    (void)state;
    optimizer_settings s = {.learning_rate = 1, .min_rate = 0.1, .schedule = RATE_COSINE};
    EXPECT_RATE(&s, 0, 12, 1);
    EXPECT_RATE(&s, 4, 12, 0.1 + 0.9 * 0.75); /* cos(60 degrees) = 1/2 */
    EXPECT_RATE(&s, 6, 12, 0.55);
    EXPECT_RATE(&s, 8, 12, 0.1 + 0.9 * 0.25);
    EXPECT_RATE(&s, 12, 12, 0.1);
    s.warmup_steps = 12; /* nothing is left for the decay */
    EXPECT_RATE(&s, 11, 12, 1);
    EXPECT_RATE(&s, 12, 12, 0.1);
}

/* ---- updates against plain loops in double ---- */

/* One update of a parameter by the reference kernels. */
static void update_shaped(const optimizer_settings *s, int t, double rate, double scale, const layer_parameter *about,
                          size_t count, float *gradient, float *weight, float *const moments[2])
{
    remat_context *context;
    backend *device;
    backend_queue *queue;
    recording calls;
    step_block block = {.scale = scale};
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    assert_int_equal(backend_open(context, &(backend_options){.kernels = "reference", .threads = 2}, &device),
                     REMAT_OK);
    assert_int_equal(backend_queue_create(device, &queue), REMAT_OK);
    recording_begin(&calls, device);
    optimizer_set_step(s, (uint64_t)t, rate, &block);
    const optimizer_update of = {.about = about,
                                 .values = count,
                                 .step = {&block, REMAT_UINT8},
                                 .gradient = {gradient, REMAT_FP32},
                                 .weight = {weight, REMAT_FP32},
                                 .states = {{moments[0], REMAT_FP32}, {moments[1], REMAT_FP32}}};
    assert_int_equal(optimizer_record(s, &calls, &of), REMAT_OK);
    assert_int_equal(backend_run(queue, &calls, 0, calls.used), REMAT_OK);
    recording_end(&calls);
    backend_queue_destroy(queue);
    backend_close(device);
    remat_context_destroy(context);
}

static void update(const optimizer_settings *s, int t, double rate, double scale, bool decays, size_t count,
                   float *gradient, float *weight, float *const moments[2])
{
    const layer_parameter about = {.rank = 1, .dims = {count}, .decay = decays};
    update_shaped(s, t, rate, scale, &about, count, gradient, weight, moments);
}

typedef struct plain_state {
    double weight, first, second;
} plain_state;

/* torch.optim.SGD, Adam and AdamW, after their documentation, and Lion after its paper. `t` is from 1. */
static void plain_update(const optimizer_settings *s, int t, double rate, double scale, bool decays, double gradient,
                         plain_state *at)
{
    double g = gradient * scale, decay = decays ? s->weight_decay : 0;
    if (s->type == OPTIMIZER_SGD) {
        g += decay * at->weight;
        if (s->momentum != 0) {
            at->first = t == 1 ? g : s->momentum * at->first + g;
            g = s->nesterov ? g + s->momentum * at->first : at->first;
        }
        at->weight -= rate * g;
        return;
    }
    if (s->type == OPTIMIZER_LION) {
        const double c = s->beta1 * at->first + (1 - s->beta1) * g;
        at->weight -= rate * ((c > 0) - (c < 0) + decay * at->weight);
        at->first = s->beta2 * at->first + (1 - s->beta2) * g;
        return;
    }
    if (s->type == OPTIMIZER_ADAMW)
        at->weight -= rate * decay * at->weight;
    else
        g += decay * at->weight;
    at->first = s->beta1 * at->first + (1 - s->beta1) * g;
    at->second = s->beta2 * at->second + (1 - s->beta2) * g * g;
    double first = at->first / (1 - pow(s->beta1, t)), second = at->second / (1 - pow(s->beta2, t));
    at->weight -= rate * first / (sqrt(second) + s->epsilon);
}

static void compare(const optimizer_settings *s, bool decays, uint32_t moment_count)
{
    enum { COUNT = 37, STEPS = 50 };
    test_random random = {test_seed()};
    float weight[COUNT], gradient[COUNT], first[COUNT] = {0}, second[COUNT] = {0};
    plain_state plain[COUNT];
    for (int i = 0; i < COUNT; i++)
        plain[i] = (plain_state){.weight = weight[i] = (float)((double)test_random_below(&random, 2001) / 1000 - 1)};
    assert_int_equal(optimizer_moments(s), moment_count);
    float *const moments[2] = {moment_count > 0 ? first : NULL, moment_count > 1 ? second : NULL};
    for (int t = 1; t <= STEPS; t++) {
        double rate = 0.01 / t, scale = t % 2 ? 1 : 0.5;
        for (int i = 0; i < COUNT; i++) {
            gradient[i] = (float)((double)test_random_below(&random, 2001) / 1000 - 1);
            plain_update(s, t, rate, scale, decays, (double)gradient[i], &plain[i]);
        }
        update(s, t, rate, scale, decays, COUNT, gradient, weight, moments);
        for (int i = 0; i < COUNT; i++)
            expect_near((double)weight[i], plain[i].weight, 2e-6, __LINE__);
    }
}

static void updates_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (int decays = 0; decays < 2; decays++) {
        optimizer_settings sgd = {.type = OPTIMIZER_SGD, .weight_decay = 0.1};
        compare(&sgd, decays, 0);
        sgd.momentum = 0.9;
        compare(&sgd, decays, 1);
        sgd.nesterov = true;
        compare(&sgd, decays, 1);
        optimizer_settings adam = {
            .type = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
        compare(&adam, decays, 2);
        adam.type = OPTIMIZER_ADAMW;
        compare(&adam, decays, 2);
        adam.beta2 = 0.95;
        compare(&adam, decays, 2);
        optimizer_settings lion = {.type = OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
        compare(&lion, decays, 1);
    }
}

/* The first step of adam is the rate, whatever the gradient is: roundings of the betas must cancel. */
static void the_first_step_of_adam_is_the_rate(void **state)
{
    (void)state;
    optimizer_settings adam = {.type = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 0};
    float weight = 0, gradient = (float)0.37, first = 0, second = 0;
    update(&adam, 1, 0.125, 1, false, 1, &gradient, &weight, (float *const[2]){&first, &second});
    expect_near((double)weight, -0.125, 3e-8, __LINE__);
}

/* ---- adafactor ---- */

enum { ROWS = 5, COLUMNS = 7, COUNT = ROWS * COLUMNS };

static double root_mean_square(const double *x)
{
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += x[i] * x[i];
    return sqrt(sum / COUNT);
}

/* torch.optim.Adafactor, after its documentation. `squares` are those of rows and columns, or of all values. */
static void plain_adafactor(int t, double rate, double decay, bool is_matrix, const double *g, double *w, double *rows,
                            double *columns)
{
    const double share = pow(t, -0.8), relative = fmin(rate, 1 / sqrt(t)), epsilon = 0x1p-23;
    const double alpha = fmax(1e-3, root_mean_square(w)) * relative;
    double u[COUNT], mean = 0;
    for (int r = 0; r < ROWS && is_matrix; r++) {
        double sum = 0;
        for (int c = 0; c < COLUMNS; c++)
            sum += g[r * COLUMNS + c] * g[r * COLUMNS + c];
        rows[r] = (1 - share) * rows[r] + share * sum / COLUMNS;
        mean += rows[r] / ROWS;
    }
    for (int c = 0; c < COLUMNS && is_matrix; c++) {
        double sum = 0;
        for (int r = 0; r < ROWS; r++)
            sum += g[r * COLUMNS + c] * g[r * COLUMNS + c];
        columns[c] = (1 - share) * columns[c] + share * sum / ROWS;
    }
    for (int i = 0; i < COUNT; i++) {
        if (!is_matrix)
            rows[i] = (1 - share) * rows[i] + share * g[i] * g[i];
        const double square = is_matrix ? rows[i / COLUMNS] * columns[i % COLUMNS] / fmax(mean, epsilon) : rows[i];
        u[i] = g[i] / sqrt(fmax(square, epsilon * epsilon));
    }
    const double divisor = fmax(1, root_mean_square(u));
    for (int i = 0; i < COUNT; i++)
        w[i] = w[i] * (1 - rate * decay) - alpha / divisor * u[i];
}

static void adafactor_follows_its_formulas(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    for (int variant = 0; variant < 4; variant++) {
        const bool is_matrix = variant & 1, decays = variant & 2;
        const optimizer_settings s = {.type = OPTIMIZER_ADAFACTOR,
                                      .weight_decay = 0.1,
                                      .beta2_decay = 0.8,
                                      .least_scale = 1e-3,
                                      .update_threshold = 1};
        const layer_parameter about = {
            .rank = is_matrix ? 2 : 1, .dims = {is_matrix ? ROWS : COUNT, is_matrix ? COLUMNS : 0}, .decay = decays};
        float gradient[COUNT], weight[COUNT], rows[COUNT] = {0}, columns[COLUMNS] = {0};
        double g[COUNT], w[COUNT], slow_rows[COUNT] = {0}, slow_columns[COLUMNS] = {0};
        for (int i = 0; i < COUNT; i++) /* small weights at first: the rate is relative to at least 0.001 */
            w[i] = (double)(weight[i] = (float)((double)test_random_below(&random, 2001) / 1e6 - 1e-3));
        for (int t = 1; t <= 50; t++) {
            for (int i = 0; i < COUNT; i++)
                g[i] = (double)(gradient[i] = (float)((double)test_random_below(&random, 2001) / 1000 - 1));
            const double rate = t % 2 ? 0.5 : 0.01;
            plain_adafactor(t, rate, decays ? 0.1 : 0, is_matrix, g, w, slow_rows, slow_columns);
            update_shaped(&s, t, rate, 1, &about, COUNT, gradient, weight,
                          (float *const[2]){rows, is_matrix ? columns : NULL});
            for (int i = 0; i < COUNT; i++)
                expect_near((double)weight[i], w[i], 2e-6 * fmax(1, fabs(w[i])), __LINE__);
        }
    }
}

/* ---- what is kept ---- */

static void expect_bytes(const optimizer_settings *s, uint32_t rank, uint64_t first, uint64_t second,
                         uint64_t first_scales, uint64_t second_scales)
{
    const layer_parameter about = {.rank = rank, .dims = {rank == 1 ? 3000 : 30, 100}};
    const uint64_t wanted[] = {first, second, first_scales, second_scales};
    optimizer_state states[OPTIMIZER_STATES];
    optimizer_find_states(s, &about, 3000, states);
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        assert_int_equal(states[i].bytes, wanted[i]);
}

static void states_take_their_bytes(void **state)
{
    (void)state;
    optimizer_settings s = {.type = OPTIMIZER_SGD};
    expect_bytes(&s, 2, 0, 0, 0, 0);
    s.momentum = 0.9;
    expect_bytes(&s, 2, 12000, 0, 0, 0);
    s.state = STATE_INT8; /* a scale for every 256 values */
    expect_bytes(&s, 1, 3000, 0, 48, 0);
    s.type = OPTIMIZER_ADAM;
    expect_bytes(&s, 2, 3000, 3000, 48, 48);
    s.state = STATE_BF16;
    expect_bytes(&s, 2, 6000, 6000, 0, 0);
    s.type = OPTIMIZER_LION;
    expect_bytes(&s, 2, 6000, 0, 0, 0);
    s = (optimizer_settings){.type = OPTIMIZER_ADAFACTOR};
    expect_bytes(&s, 1, 12000, 0, 0, 0);
    expect_bytes(&s, 2, 120, 400, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_rates),
        cmocka_unit_test(rates_in_steps),
        cmocka_unit_test(rates_of_one_cycle),
        cmocka_unit_test(rates_of_a_plateau),
        cmocka_unit_test(linear_rates),
        cmocka_unit_test(cosine_rates),
        cmocka_unit_test(updates_are_those_of_plain_loops),
        cmocka_unit_test(the_first_step_of_adam_is_the_rate),
        cmocka_unit_test(adafactor_follows_its_formulas),
        cmocka_unit_test(states_take_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
