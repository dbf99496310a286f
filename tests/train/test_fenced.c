/* Training on a device whose memory the host cannot touch, and which works on its own: every example model, by several
 * strategies and budgets, has the processor's bits. Saved files move between the two, gradients and predictions too. */
#include <math.h>

#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/parameter_of_0_1.h"
#include "support/random_model.h"
#include "support/scratch_files.h"
#include "support/small_models.h"

enum { STEPS = 4 };

static remat_train_options options_for(const char *device, const char *strategy, uint64_t budget)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.device = device;
    options.strategy = strategy;
    options.budget_bytes = budget;
    options.threads = 2;
    options.steps = 2 * STEPS;
    return options;
}

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *device, const char *strategy)
{
    remat_trainer *trainer;
    const remat_train_options options = options_for(device, strategy, REMAT_NO_BUDGET);
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static void take_steps(fixture *f, remat_trainer *trainer, double losses[STEPS])
{
    for (int i = 0; i < STEPS; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        losses[i] = result.loss;
    }
}

/* Everything that training leaves, as a file. */
static char *state_of(fixture *f, const remat_trainer *trainer, size_t *length)
{
    const char *path = scratch_path("state.safetensors");
    expect_ok(f, remat_trainer_save(trainer, path, true));
    return scratch_read(path, length);
}

static void expect_same_state(fixture *f, const char *name, const remat_trainer *a, const remat_trainer *b)
{
    size_t lengths[2];
    char *one = state_of(f, a, &lengths[0]), *two = state_of(f, b, &lengths[1]);
    if (lengths[0] != lengths[1] || memcmp(one, two, lengths[0]) != 0)
        fail_msg("%s: the weights or moments differ between devices", name);
    free(one);
    free(two);
}

static void expect_same_validation(fixture *f, const char *name, remat_trainer *a, remat_trainer *b)
{
    remat_validation_result one, two;
    if (remat_trainer_validate(a, &one) != REMAT_OK)
        return; /* it has no validation data */
    expect_ok(f, remat_trainer_validate(b, &two));
    if (memcmp(&one.loss, &two.loss, sizeof one.loss) != 0 || one.samples != two.samples ||
        (one.accuracy != two.accuracy && !(isnan(one.accuracy) && isnan(two.accuracy))))
        fail_msg("%s: the validation differs between devices", name);
}

/* ---- the same bits ---- */

static void compare(fixture *f, remat_model *model, const char *name, const char *strategy, uint64_t budget)
{
    double wanted[STEPS], got[STEPS];
    remat_trainer *cpu = open_trainer(f, model, "cpu", "none"), *fenced;
    const remat_train_options options = options_for("fenced", strategy, budget);
    expect_ok(f, remat_trainer_create(model, &options, &fenced));
    take_steps(f, cpu, wanted);
    take_steps(f, fenced, got);
    if (memcmp(wanted, got, sizeof wanted) != 0)
        fail_msg("%s by %s: the losses differ between devices", name, strategy ? strategy : "budget");
    expect_same_state(f, name, cpu, fenced);
    expect_same_validation(f, name, cpu, fenced);
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(fenced);
}

static uint64_t smallest_budget(fixture *f, remat_model *model)
{
    remat_train_options options = options_for("fenced", NULL, REMAT_NO_BUDGET);
    remat_trainer_figures figures;
    remat_trainer *trainer;
    options.plan_only = true;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_get_figures(trainer, &figures);
    remat_trainer_destroy(trainer);
    return figures.min_budget_bytes;
}

static void example_models_have_the_same_bits(void **state)
{
    fixture *f = *state;
    for (size_t m = 0; small_model_name(m); m++) {
        const char *name = small_model_name(m);
        remat_model *model;
        expect_ok(f, small_model_load(f->context, name, &model));
        compare(f, model, name, "none", REMAT_NO_BUDGET);
        compare(f, model, name, "full", REMAT_NO_BUDGET);
        compare(f, model, name, NULL, smallest_budget(f, model));
        remat_model_destroy(model);
    }
}

/* All layer types, with and without accumulation and clipping. */
static void random_models_have_the_same_bits(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(40, 10); i++) {
        random_model_options about = {.seed = test_random_next(&random),
                                      .layers = 2 + (unsigned)test_random_below(&random, 16)};
        char name[32];
        remat_model *model;
        snprintf(name, sizeof name, "seed %llu", (unsigned long long)about.seed);
        if (random_model_make(f->context, &about, &model, NULL) != REMAT_OK)
            fail_msg("%s", remat_context_message(f->context));
        compare(f, model, name, i % 2 ? "full" : "sqrt", REMAT_NO_BUDGET);
        remat_model_destroy(model);
    }
}

/* ---- going on elsewhere ---- */

static void trainings_move_between_devices(void **state)
{
    fixture *f = *state;
    static const char *const devices[][2] = {{"cpu", "fenced"}, {"fenced", "cpu"}, {"fenced", "fenced"}};
    const char *path = scratch_path("moved.safetensors");
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        double wanted[2 * STEPS], got[2 * STEPS];
        expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
        remat_trainer *whole = open_trainer(f, model, "cpu", "none");
        take_steps(f, whole, wanted);
        take_steps(f, whole, wanted + STEPS);
        for (int d = 0; d < 3; d++) {
            remat_trainer *start = open_trainer(f, model, devices[d][0], "none");
            take_steps(f, start, got);
            expect_ok(f, remat_trainer_save(start, path, true));
            remat_trainer_destroy(start);
            remat_trainer *rest = open_trainer(f, model, devices[d][1], "full");
            expect_ok(f, remat_trainer_resume(rest, path));
            take_steps(f, rest, got + STEPS);
            assert_memory_equal(got, wanted, sizeof wanted);
            expect_same_state(f, small_model_name(m), whole, rest);
            remat_trainer_destroy(rest);
        }
        remat_trainer_destroy(whole);
        remat_model_destroy(model);
    }
}

/* ---- what comes back ---- */

typedef struct gradient_sum {
    double sum;
    uint64_t count;
} gradient_sum;

static void add_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    gradient_sum *all = user;
    for (uint64_t i = 0; i < count; i++)
        all->sum += (double)gradient[i] * (double)(1 + parameter) * (double)(1 + i % 7);
    all->count += count;
}

/* Not input gradients: the fenced device joins that of gelu with another. */
static void count_action(void *user, const remat_action *action)
{
    assert_true(action->ended >= action->began);
    *(uint64_t *)user += strcmp(action->phase, "input_gradient") != 0;
}

static void gradients_and_times_come_back(void **state)
{
    fixture *f = *state;
    static const char *const devices[] = {"cpu", "fenced"};
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        gradient_sum sums[2] = {0};
        uint64_t actions[2] = {0};
        double losses[2][STEPS];
        expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
        for (int d = 0; d < 2; d++) {
            remat_trainer *trainer = open_trainer(f, model, devices[d], "full");
            remat_profile *profile;
            expect_ok(f, remat_trainer_measure(trainer, 2, &profile));
            assert_true(remat_profile_layer_count(profile) > 0);
            remat_profile_destroy(profile);
            remat_trainer_on_gradient(trainer, add_gradient, &sums[d]);
            expect_ok(f, remat_trainer_on_action(trainer, count_action, &actions[d]));
            take_steps(f, trainer, losses[d]);
            remat_trainer_destroy(trainer);
        }
        assert_true(sums[0].count > 0 && sums[0].count == sums[1].count);
        assert_memory_equal(&sums[0].sum, &sums[1].sum, sizeof sums[0].sum);
        assert_int_equal(actions[0], actions[1]);
        assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
        remat_model_destroy(model);
    }
}

static void predictions_come_back(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("weights.safetensors");
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        remat_predictor *cpu, *fenced;
        expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
        remat_trainer *trainer = open_trainer(f, model, "fenced", "none");
        expect_ok(f, remat_trainer_save(trainer, path, false));
        remat_trainer_destroy(trainer);
        const remat_train_options here = options_for("cpu", NULL, REMAT_NO_BUDGET);
        const remat_train_options there = options_for("fenced", NULL, REMAT_NO_BUDGET);
        expect_ok(f, remat_predictor_create(model, path, &here, &cpu));
        expect_ok(f, remat_predictor_create(model, path, &there, &fenced));
        for (uint64_t first = 0; first < 3; first++) {
            remat_prediction one, two;
            expect_ok(f, remat_predictor_run_samples(cpu, first, &one));
            expect_ok(f, remat_predictor_run_samples(fenced, first, &two));
            assert_int_equal(one.batch, two.batch);
            assert_memory_equal(one.values, two.values,
                                one.batch * one.shape[0] * one.shape[1] * one.shape[2] * sizeof *one.values);
        }
        remat_predictor_destroy(cpu);
        remat_predictor_destroy(fenced);
        remat_model_destroy(model);
    }
}

/* Programs of 0.1 read parameters through pointers. They get none to memory that they cannot touch. */
static void no_pointers_into_a_device(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "convnet.ini", &model));
    remat_trainer *cpu = open_trainer(f, model, "cpu", "none"), *fenced = open_trainer(f, model, "fenced", "none");
    for (size_t i = 0; i < remat_trainer_parameter_count(cpu); i++) {
        parameter_of_0_1 here, there;
        expect_ok(f, get_parameter_of_0_1(cpu, i, &here));
        expect_ok(f, get_parameter_of_0_1(fenced, i, &there));
        assert_string_equal(here.name, there.name);
        assert_int_equal(here.count, there.count);
        assert_non_null(here.values);
        assert_null(there.values);
        assert_null(there.moments[0]);
    }
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(fenced);
    remat_model_destroy(model);
}

/* Staging is counted: what is planned is what is allocated. */
static void staging_is_counted(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "convnet.ini", &model));
    remat_trainer *cpu = open_trainer(f, model, "cpu", "none"), *fenced = open_trainer(f, model, "fenced", "none");
    remat_trainer_figures here, there;
    remat_run_result result;
    remat_trainer_get_figures(cpu, &here);
    remat_trainer_get_figures(fenced, &there);
    assert_true(there.total_bytes > here.total_bytes);
    assert_int_equal(there.arena_bytes, here.arena_bytes);
    expect_ok(f, remat_trainer_run(fenced, NULL, &result));
    assert_int_equal(result.allocated_bytes, there.total_bytes);
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(fenced);
    remat_model_destroy(model);
}

/* While the device computes, the next batch is prepared. A validation and a step back use the same buffers: what was prepared is made
 * again. */
static void batches_are_prepared_ahead(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("start.safetensors");
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "convnet.ini", &model));
    remat_trainer *cpu = open_trainer(f, model, "cpu", "none"), *fenced = open_trainer(f, model, "fenced", "none");
    expect_ok(f, remat_trainer_save(cpu, path, true));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3 * STEPS; i++) {
            remat_step_result here, there;
            expect_ok(f, remat_trainer_step(cpu, &here));
            expect_ok(f, remat_trainer_step(fenced, &there));
            assert_memory_equal(&here.loss, &there.loss, sizeof here.loss);
            assert_true(here.data_seconds > 0);
            assert_true((there.data_seconds == 0) == (i > 0 && i != STEPS));
            if (i == STEPS - 1)
                expect_same_validation(f, "convnet.ini", cpu, fenced);
        }
        expect_same_state(f, "convnet.ini", cpu, fenced);
        expect_ok(f, remat_trainer_resume(cpu, path));
        expect_ok(f, remat_trainer_resume(fenced, path));
    }
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(fenced);
    remat_model_destroy(model);
}

/* A batch that was prepared is not that of another training, which is at the same step and has another order. */
static void prepared_batches_are_forgotten(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("other.safetensors");
    remat_model *model;
    remat_trainer *cpu;
    remat_step_result here, there;
    expect_ok(f, small_model_load(f->context, "convnet.ini", &model));
    remat_train_options options = options_for("cpu", "none", REMAT_NO_BUDGET);
    options.seed = 7;
    expect_ok(f, remat_trainer_create(model, &options, &cpu));
    remat_trainer *fenced = open_trainer(f, model, "fenced", "none");
    expect_ok(f, remat_trainer_step(cpu, &here));
    expect_ok(f, remat_trainer_save(cpu, path, true));
    expect_ok(f, remat_trainer_step(fenced, &there));
    expect_ok(f, remat_trainer_resume(fenced, path));
    expect_ok(f, remat_trainer_step(cpu, &here));
    expect_ok(f, remat_trainer_step(fenced, &there));
    assert_memory_equal(&here.loss, &there.loss, sizeof here.loss);
    expect_same_state(f, "convnet.ini", cpu, fenced);
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(fenced);
    remat_model_destroy(model);
}

int main(void)
{
    if (strcmp(fenced_device(), "fenced") != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(example_models_have_the_same_bits),
        FIXTURE_TEST(random_models_have_the_same_bits),
        FIXTURE_TEST(trainings_move_between_devices),
        FIXTURE_TEST(gradients_and_times_come_back),
        FIXTURE_TEST(predictions_come_back),
        FIXTURE_TEST(no_pointers_into_a_device),
        FIXTURE_TEST(staging_is_counted),
        FIXTURE_TEST(batches_are_prepared_ahead),
        FIXTURE_TEST(prepared_batches_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
