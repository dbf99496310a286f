/* The trainer's memory, and that it learns: optimizers, clipping, accumulation, measuring. */
#include "support/parameter_copies.h"
#include "support/random_model.h"
#include "support/small_models.h"
#include "train/trainer_toy.h"

/* ---- memory ---- */

/* Big blocks are the areas; what else a trainer holds is small, and does not grow with the batch. */
static void test_allocates_what_it_plans(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++)
        for (unsigned threads = 1; threads <= 2; threads++) {
            remat_model *model;
            expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
            remat_train_options options;
            remat_train_options_init(&options);
            options.threads = threads;
            options.strategy = threads == 1 ? "none" : "full";
            options.steps = 2;
            remat_trainer *trainer;
            expect_ok(f, remat_trainer_create(model, &options, &trainer));
            remat_trainer_figures figures;
            remat_trainer_get_figures(trainer, &figures);
            assert_int_equal(figures.total_bytes, figures.weight_bytes + figures.optimizer_bytes +
                                                      figures.gradient_bytes + figures.scratch_bytes +
                                                      figures.arena_bytes);
            assert_true(figures.peak_bytes <= figures.arena_bytes);
            assert_int_equal(figures.threads, threads);
            uint64_t held = f->memory.bytes, calls = f->memory.calls;
            one_step(f, trainer);
            one_step(f, trainer);
            assert_int_equal(f->memory.calls, calls); /* a step allocates nothing */
            assert_int_equal(f->memory.bytes, held);
            remat_run_result result;
            expect_ok(f, remat_trainer_run(trainer, NULL, &result));
            assert_int_equal(result.allocated_bytes, figures.total_bytes);
            remat_trainer_destroy(trainer);
            remat_model_destroy(model);
        }
}

typedef struct area_count {
    uint64_t bytes;
} area_count;

static void *count_aligned(void *user, size_t bytes, size_t alignment)
{
    area_count *count = user;
    if (alignment == 64)
        count->bytes += bytes;
    return aligned_alloc(alignment < 16 ? 16 : alignment, (bytes + 63) & ~(size_t)63);
}

static void release_aligned(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

/* Counted at the allocator itself: the areas are the only allocations aligned to 64 bytes. */
static void test_areas_at_the_allocator(void **state)
{
    (void)state;
    area_count count = {0};
    remat_context *context;
    assert_int_equal(remat_context_create(&(remat_allocator){count_aligned, release_aligned, &count}, &context),
                     REMAT_OK);
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(20, 5); i++) {
        random_model_options about = {.seed = test_random_next(&random), .layers = 10, .clip = -1, .block = 3};
        remat_model *model;
        assert_int_equal(random_model_make(context, &about, &model, NULL), REMAT_OK);
        remat_train_options options;
        remat_train_options_init(&options);
        options.threads = 1 + (unsigned)i % 3;
        remat_trainer *trainer;
        count.bytes = 0;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        assert_int_equal(count.bytes, figures.total_bytes);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
    remat_context_destroy(context);
}

static void test_no_memory(void **state)
{
    fixture *f = *state;
    random_model_options about = {.seed = 7, .layers = 8, .clip = 1, .accumulate = 2, .block = 2};
    remat_model *model;
    expect_ok(f, random_model_make(f->context, &about, &model, NULL));
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    uint64_t held = f->memory.bytes, blocks = f->memory.blocks, before = f->memory.calls;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    uint64_t calls = f->memory.calls - before;
    remat_trainer_destroy(trainer);
    assert_int_equal(f->memory.bytes, held);
    assert_true(calls > 20);
    uint64_t stride = 1 + calls / LESS_WHEN_SANITIZED(1000, 150);
    for (uint64_t n = 1; n <= calls; n += stride) {
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = remat_trainer_create(model, &options, &trainer);
        f->memory.fail_at = 0;
        if (status != REMAT_NO_MEMORY)
            fail_msg("with allocation %llu of %llu failing it returns %d", (unsigned long long)n,
                     (unsigned long long)calls, (int)status);
        assert_null(trainer);
        assert_int_equal(f->memory.bytes, held);
        assert_int_equal(f->memory.blocks, blocks);
    }
    remat_model_destroy(model);
}

/* ---- learning ---- */

static void expect_learning(fixture *f, const char *optimizer, const char *const *properties, const char *setting)
{
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model = toy_model(f, optimizer, properties, REMAT_PROPERTIES("batch_size=16", setting));
    remat_trainer *trainer = toy_trainer(f, model, &data, 400);
    remat_validation_result before, after;
    expect_ok(f, remat_trainer_validate(trainer, &before));
    remat_run_result result;
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    expect_ok(f, remat_trainer_validate(trainer, &after));
    assert_int_equal(result.steps, 400);
    assert_int_equal(remat_trainer_steps_taken(trainer), 400);
    assert_int_equal(after.samples, 32);
    assert_true(isnan(after.accuracy));
    if (!(after.loss < 0.1 * before.loss))
        fail_msg("%s with %s: from %g to %g", optimizer, properties[0], before.loss, after.loss);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_learns(void **state)
{
    fixture *f = *state;
    const char *plain = "clip_norm=0";
    expect_learning(f, "sgd", REMAT_PROPERTIES("learning_rate=0.2"), plain);
    expect_learning(f, "sgd", REMAT_PROPERTIES("learning_rate=0.05", "momentum=0.9"), plain);
    expect_learning(f, "sgd", REMAT_PROPERTIES("learning_rate=0.05", "momentum=0.9", "nesterov=true"), "clip_norm=1");
    expect_learning(f, "adam", REMAT_PROPERTIES("learning_rate=0.01"), plain);
    expect_learning(f, "adam", REMAT_PROPERTIES("learning_rate=0.01", "schedule=cosine", "warmup_steps=20"),
                    "accumulate=2");
    expect_learning(f, "adamw", REMAT_PROPERTIES("learning_rate=0.01", "weight_decay=0.01"), plain);
    expect_learning(f, "adamw", REMAT_PROPERTIES("learning_rate=0.02", "schedule=linear"), "clip_norm=0.5");
    expect_learning(f, "sgd", REMAT_PROPERTIES("learning_rate=0.3", "schedule=step", "step_size=150", "gamma=0.5"),
                    plain);
}

/* ---- clipping ---- */

typedef struct gradient_sum {
    double squares;
} gradient_sum;

static void sum_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    (void)parameter;
    gradient_sum *sum = user;
    for (uint64_t i = 0; i < count; i++)
        sum->squares += (double)gradient[i] * gradient[i];
}

static double *copy_weights(fixture *f, const remat_trainer *trainer, size_t *count)
{
    double *all = NULL;
    *count = 0;
    for (size_t p = 0; p < remat_trainer_parameter_count(trainer); p++) {
        remat_parameter parameter;
        float *values = parameter_copy(f, trainer, p, &parameter);
        all = realloc(all, (*count + parameter.count) * sizeof *all);
        for (uint64_t i = 0; i < parameter.count; i++)
            all[(*count)++] = (double)values[i];
        free(values);
    }
    return all;
}

/* With plain sgd at rate 1 the weights move by the clipped gradient itself. */
static void expect_clipping(fixture *f, const char *accumulate)
{
    toy data = {UINT64_MAX, 0, 100};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=1"),
                                   REMAT_PROPERTIES("batch_size=8", "clip_norm=0.25", accumulate));
    remat_trainer *trainer = toy_trainer(f, model, &data, 10);
    gradient_sum sum = {0};
    remat_trainer_on_gradient(trainer, sum_gradient, &sum);
    size_t count;
    double *before = copy_weights(f, trainer, &count), moved = 0;
    remat_step_result result = one_step(f, trainer);
    double *after = copy_weights(f, trainer, &count);
    for (size_t i = 0; i < count; i++)
        moved += (after[i] - before[i]) * (after[i] - before[i]);
    assert_true(result.gradient_norm > 1);
    assert_true(fabs(result.gradient_norm - sqrt(sum.squares)) <= 1e-5 * result.gradient_norm);
    assert_true(fabs(sqrt(moved) - 0.25) < 1e-4);
    free(before);
    free(after);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_clipping(void **state)
{
    fixture *f = *state;
    expect_clipping(f, "accumulate=1");
    expect_clipping(f, "accumulate=3");
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=1"), REMAT_PROPERTIES("batch_size=8"));
    remat_trainer *trainer = toy_trainer(f, model, &data, 10);
    assert_true(isnan(one_step(f, trainer).gradient_norm));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* ---- accumulation ---- */

/* Gradients of the first step; NULL for parameters without one. */
typedef struct gradient_list {
    float *values[128];
    uint64_t counts[128];
} gradient_list;

static void keep_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    gradient_list *list = user;
    assert_true(parameter < 128 && !list->values[parameter]);
    list->values[parameter] = malloc(count * sizeof *gradient);
    list->counts[parameter] = count;
    memcpy(list->values[parameter], gradient, count * sizeof *gradient);
}

static double step_with(fixture *f, random_model_options about, unsigned batch, unsigned accumulate,
                        gradient_list *gradients)
{
    about.batch = batch;
    about.accumulate = accumulate;
    remat_model *model;
    expect_ok(f, random_model_make(f->context, &about, &model, NULL));
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_on_gradient(trainer, keep_gradient, gradients);
    double loss = one_step(f, trainer).loss;
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return loss;
}

static void test_accumulation(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(15, 4); i++) {
        random_model_options about = {
            .seed = test_random_next(&random), .layers = 6, .smooth = true, .separate = true, .optimizer = "sgd"};
        gradient_list whole = {0}, parts = {0};
        double loss = step_with(f, about, 12, 1, &whole);
        double summed = step_with(f, about, 4, 3, &parts);
        assert_true(fabs(loss - summed) <= 1e-4 * fabs(loss));
        double largest = 1e-3, error = 0;
        for (size_t p = 0; p < 128; p++) {
            for (uint64_t k = 0; k < whole.counts[p]; k++) {
                largest = fmax(largest, fabs((double)whole.values[p][k]));
                error = fmax(error, fabs((double)whole.values[p][k] - (double)parts.values[p][k]));
            }
            free(whole.values[p]);
            free(parts.values[p]);
        }
        if (!(error <= 1e-3 * largest))
            fail_msg("model of seed %llu: gradients differ by %g of %g", (unsigned long long)about.seed, error,
                     largest);
    }
}

/* ---- profiles of a model ---- */

static remat_status twos(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    (void)user, (void)sample;
    for (int i = 0; i < 3; i++) {
        ((float *)inputs[0])[i] = 2;
        ((float *)labels)[i] = 0;
    }
    return REMAT_OK;
}

/* Nothing can be learned, but the loss is what it is. */
static void test_without_parameters(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_trainer *trainer;
    remat_step_result result;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:3")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=act", "activation=relu")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4")));
    expect_ok(f, remat_model_compile(model));
    static const char *const strategies[] = {"none", "full"};
    for (int s = 0; s < 2; s++) {
        remat_train_options options;
        remat_train_options_init(&options);
        options.strategy = strategies[s];
        options.sample = twos;
        options.samples = 8;
        options.threads = 1;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        expect_ok(f, remat_trainer_step(trainer, &result));
        assert_true(result.loss == 4);
        remat_trainer_destroy(trainer);
    }
    remat_model_destroy(model);
}

static void test_measure(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "transformer.ini", &model));
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    double untouched = one_step(f, trainer).loss;
    remat_trainer_destroy(trainer);
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_profile *profile;
    expect_ok(f, remat_trainer_measure(trainer, 3, &profile));
    assert_true(remat_profile_layer_count(profile) > 10);
    for (size_t i = 0; i < remat_profile_layer_count(profile); i++)
        assert_true(remat_profile_layer(profile, i)->modes[0].forward_cost < 1000000000u);
    assert_true(one_step(f, trainer).loss == untouched); /* measuring trains nothing */
    remat_profile_destroy(profile);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_allocates_what_it_plans),
        cmocka_unit_test(test_areas_at_the_allocator),
        FIXTURE_TEST(test_no_memory),
        FIXTURE_TEST(test_learns),
        FIXTURE_TEST(test_clipping),
        FIXTURE_TEST(test_accumulation),
        FIXTURE_TEST(test_without_parameters),
        FIXTURE_TEST(test_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
