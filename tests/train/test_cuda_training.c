/* Training on a GPU: every example model and random models, in fp32 and bf16. Losses and weights are near to the processor's; every
 * strategy and budget has the same bits; trainings move between the devices. Skipped where there is no GPU. */
#include <math.h>

#include "backend/backend.h"
#include "support/fixture.h"
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

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *device, const char *strategy,
                                   uint64_t budget)
{
    remat_trainer *trainer;
    const remat_train_options options = options_for(device, strategy, budget);
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

static char *state_of(fixture *f, const remat_trainer *trainer, size_t *length)
{
    const char *path = scratch_path("state.safetensors");
    expect_ok(f, remat_trainer_save(trainer, path, true));
    return scratch_read(path, length);
}

static void expect_same_state(fixture *f, const char *name, const char *how, const remat_trainer *a,
                              const remat_trainer *b)
{
    size_t lengths[2];
    char *one = state_of(f, a, &lengths[0]), *two = state_of(f, b, &lengths[1]);
    if (lengths[0] != lengths[1] || memcmp(one, two, lengths[0]) != 0)
        fail_msg("%s: the weights or moments differ %s", name, how);
    free(one);
    free(two);
}

static uint64_t smallest_budget(fixture *f, remat_model *model)
{
    remat_train_options options = options_for("cuda", NULL, REMAT_NO_BUDGET);
    remat_trainer_figures figures;
    remat_trainer *trainer;
    options.plan_only = true;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_get_figures(trainer, &figures);
    remat_trainer_destroy(trainer);
    return figures.min_budget_bytes;
}

static void expect_near_losses(const char *name, const double *got, const double *wanted, double allowed)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got[i] - wanted[i]) <= allowed * (0.1 + fabs(wanted[i]))))
            fail_msg("%s: the loss of step %d is %.9g on the GPU and %.9g on the processor", name, i + 1, got[i],
                     wanted[i]);
}

/* Keeping all, recomputing all, and the smallest budget. What is planned is what is allocated. */
static void compare_plans(fixture *f, remat_model *model, const char *name, const remat_trainer *kept,
                          const double *losses)
{
    static const char *const strategies[] = {"full", NULL};
    for (int s = 0; s < 2; s++) {
        double got[STEPS];
        const uint64_t budget = strategies[s] ? REMAT_NO_BUDGET : smallest_budget(f, model);
        remat_trainer *other = open_trainer(f, model, "cuda", strategies[s], budget);
        remat_trainer_figures figures;
        remat_trainer_get_figures(other, &figures);
        assert_true(figures.total_bytes <= budget);
        take_steps(f, other, got);
        if (memcmp(got, losses, sizeof got) != 0)
            fail_msg("%s by %s: the losses differ between plans", name,
                     strategies[s] ? strategies[s] : "the smallest budget");
        expect_same_state(f, name, strategies[s] ? "with everything recomputed" : "at the smallest budget", kept,
                          other);
        remat_trainer_destroy(other);
    }
}

static void judge(fixture *f, remat_model *model, const char *name, double allowed)
{
    double wanted[STEPS], got[STEPS];
    remat_trainer *cpu = open_trainer(f, model, "cpu", "none", REMAT_NO_BUDGET);
    take_steps(f, cpu, wanted);
    remat_trainer *cuda = open_trainer(f, model, "cuda", "none", REMAT_NO_BUDGET);
    take_steps(f, cuda, got);
    expect_near_losses(name, got, wanted, allowed);
    compare_plans(f, model, name, cuda, got);
    remat_validation_result here, there;
    if (remat_trainer_validate(cpu, &here) == REMAT_OK) {
        expect_ok(f, remat_trainer_validate(cuda, &there));
        assert_int_equal(here.samples, there.samples);
        if (!(fabs(here.loss - there.loss) <= allowed * (0.1 + fabs(here.loss))))
            fail_msg("%s: the validation loss is %.9g on the GPU and %.9g on the processor", name, there.loss,
                     here.loss);
    }
    remat_trainer_destroy(cpu);
    remat_trainer_destroy(cuda);
}

static void example_models_agree(void **state)
{
    fixture *f = *state;
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
        judge(f, model, small_model_name(m), 2e-4);
        remat_model_destroy(model);
    }
}

static void example_models_agree_in_bf16(void **state)
{
    fixture *f = *state;
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        char name[80];
        snprintf(name, sizeof name, "%s in bf16", small_model_name(m));
        expect_ok(f, small_model_load_with(f->context, small_model_name(m), "precision = bf16", &model));
        judge(f, model, name, 0.05);
        remat_model_destroy(model);
    }
}

/* Linear layers with every activation between them, in bf16, with a bias and without: what is joined, and what must not be. */
static void activations_agree_in_bf16(void **state)
{
    fixture *f = *state;
    static const char *const kinds[] = {"relu", "leaky_relu", "gelu", "gelu_erf", "sigmoid", "tanh", "swish"};
    for (size_t k = 0; k < 2 * sizeof kinds / sizeof kinds[0]; k++) {
        char text[640], name[32];
        remat_model *model;
        const char *kind = kinds[k / 2], *bias = k % 2 ? "false" : "true";
        snprintf(text, sizeof text,
                 "[Model]\nbatch_size = 4\nprecision = bf16\n[Optimizer]\nType = adam\n[Dataset]\nType = random\n"
                 "samples = 64\n[in]\nType = input\ninput_shape = 1:8:24\n"
                 "[a]\nType = fully_connected\nunit = 64\nbias = %s\nactivation = %s\n"
                 "[b]\nType = fully_connected\nunit = 40\nbias = %s\nactivation = %s\n"
                 "[c]\nType = fully_connected\nunit = 10\nbias = %s\n[loss]\nType = mse\n",
                 bias, kind, bias, kind, bias);
        snprintf(name, sizeof name, "%s, bias = %s", kind, bias);
        FILE *stream = stream_of(text, strlen(text));
        expect_ok(f, remat_model_read(f->context, stream, "model.ini", &model));
        fclose(stream);
        judge(f, model, name, 0.05);
        remat_model_destroy(model);
    }
}

/* All layer types, optimizers, accumulation and clipping. */
static void random_models_agree(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < 60; i++) {
        random_model_options about = {.seed = test_random_next(&random),
                                      .layers = 2 + (unsigned)test_random_below(&random, 16)};
        char name[32];
        remat_model *model;
        snprintf(name, sizeof name, "seed %llu", (unsigned long long)about.seed);
        if (random_model_make(f->context, &about, &model, NULL) != REMAT_OK)
            fail_msg("%s", remat_context_message(f->context));
        judge(f, model, name, 2e-3);
        remat_model_destroy(model);
    }
}

/* The bits of one device, though the training began on the other or was interrupted. */
static void trainings_move_between_devices(void **state)
{
    fixture *f = *state;
    for (size_t m = 0; small_model_name(m); m++) {
        remat_model *model;
        double wanted[2][STEPS], got[STEPS];
        expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
        remat_trainer *whole = open_trainer(f, model, "cuda", "none", REMAT_NO_BUDGET);
        take_steps(f, whole, wanted[0]);
        expect_ok(f, remat_trainer_save(whole, scratch_path("moved.safetensors"), true));
        take_steps(f, whole, wanted[1]);
        remat_trainer *rest = open_trainer(f, model, "cuda", "full", REMAT_NO_BUDGET);
        expect_ok(f, remat_trainer_resume(rest, scratch_path("moved.safetensors")));
        take_steps(f, rest, got);
        assert_memory_equal(got, wanted[1], sizeof got);
        expect_same_state(f, small_model_name(m), "after it was resumed", whole, rest);
        remat_trainer_destroy(rest);
        remat_trainer *here = open_trainer(f, model, "cpu", "none", REMAT_NO_BUDGET);
        expect_ok(f, remat_trainer_resume(here, scratch_path("moved.safetensors")));
        take_steps(f, here, got);
        expect_near_losses(small_model_name(m), wanted[1], got, 5e-4);
        remat_trainer_destroy(here);
        remat_trainer_destroy(whole);
        remat_model_destroy(model);
    }
}

static void count_action(void *user, const remat_action *action)
{
    assert_true(action->ended >= action->began);
    ++*(uint64_t *)user;
}

/* Profiles and traces, with the bits of a run that nobody looks at. */
static void times_come_back(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_profile *profile;
    uint64_t actions = 0;
    double losses[2][STEPS];
    expect_ok(f, small_model_load(f->context, "gpt.ini", &model));
    remat_trainer *plain = open_trainer(f, model, "cuda", "full", REMAT_NO_BUDGET);
    take_steps(f, plain, losses[0]);
    remat_trainer *watched = open_trainer(f, model, "cuda", "full", REMAT_NO_BUDGET);
    expect_ok(f, remat_trainer_measure(watched, 2, &profile));
    assert_true(remat_profile_layer_count(profile) > 0);
    remat_profile_destroy(profile);
    expect_ok(f, remat_trainer_on_action(watched, count_action, &actions));
    take_steps(f, watched, losses[1]);
    assert_true(actions > 0);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    remat_trainer_destroy(plain);
    remat_trainer_destroy(watched);
    remat_model_destroy(model);
}

static void allocated_is_planned(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_trainer_figures figures;
    remat_run_result result;
    expect_ok(f, small_model_load(f->context, "convnet.ini", &model));
    remat_trainer *trainer = open_trainer(f, model, "cuda", "none", REMAT_NO_BUDGET);
    remat_trainer_get_figures(trainer, &figures);
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_int_equal(result.allocated_bytes, figures.total_bytes);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* ---- wrong devices ---- */

static void devices_that_are_not_there(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"cuda:99", "cuda:", "cuda:1x", "cuda:-1"};
    for (int i = 0; i < 4; i++) {
        backend *device;
        expect_status(f, backend_open(f->context, &(backend_options){.device = names[i]}, &device), REMAT_INVALID);
        assert_non_null(strstr(remat_context_message(f->context), names[i]));
    }
}

static void too_much_memory(void **state)
{
    fixture *f = *state;
    backend *device;
    backend_memory memory;
    expect_ok(f, backend_open(f->context, &(backend_options){.device = "cuda"}, &device));
    expect_status(f, backend_allocate(device, MEMORY_DEVICE, (uint64_t)1 << 45, false, &memory), REMAT_NO_MEMORY);
    assert_non_null(strstr(remat_context_message(f->context), "free"));
    expect_ok(f, backend_allocate(device, MEMORY_DEVICE, 1 << 20, false, &memory)); /* it goes on */
    backend_release(device, &memory);
    backend_close(device);
}

static bool has_gpu(void)
{
    remat_context *context;
    backend *device;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return false;
    const bool opened = backend_open(context, &(backend_options){.device = "cuda"}, &device) == REMAT_OK;
    if (opened)
        backend_close(device);
    else
        print_message("skipped: %s\n", remat_context_message(context));
    remat_context_destroy(context);
    return opened;
}

int main(void)
{
    if (!has_gpu())
        return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(devices_that_are_not_there),     FIXTURE_TEST(too_much_memory),
        FIXTURE_TEST(example_models_agree),           FIXTURE_TEST(example_models_agree_in_bf16),
        FIXTURE_TEST(activations_agree_in_bf16),      FIXTURE_TEST(random_models_agree),
        FIXTURE_TEST(trainings_move_between_devices), FIXTURE_TEST(times_come_back),
        FIXTURE_TEST(allocated_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
