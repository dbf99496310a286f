/* Frozen layers: what does not change, what is not kept, and what memory that saves. */
#include "train/trainer_toy.h"

#include <string.h>

/* A stack of eight layers; those before `first` are frozen. */
static remat_model *stack(fixture *f, int first, const char *extra)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "name=fc%d", i);
        expect_ok(f, remat_model_add_layer(
                         model, i % 3 == 2 ? "batch_normalization" : "fully_connected",
                         i % 3 == 2 ? REMAT_PROPERTIES(name, i < first ? "trainable=false" : "trainable=true")
                                    : REMAT_PROPERTIES(name, "unit=64", "activation=tanh",
                                                       i < first ? "trainable=false" : "trainable=true")));
    }
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=16", extra)));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static remat_trainer *open_trainer(fixture *f, remat_model *model, toy *data, const char *strategy)
{
    remat_train_options options = toy_options(data);
    options.steps = 6;
    options.strategy = strategy;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static float *copy_parameter(fixture *f, const remat_trainer *trainer, size_t p, remat_parameter *about)
{
    expect_ok(f, remat_trainer_get_parameter(trainer, p, about));
    float *values = malloc(about->count * sizeof *values);
    assert_non_null(values);
    expect_ok(f, remat_trainer_read_parameter(trainer, p, values, about->count));
    return values;
}

static bool is_frozen(const char *name, int first)
{
    return strncmp(name, "fc", 2) == 0 && name[2] - '0' < first;
}

static void test_only_trained_layers_change(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    enum { FIRST = 6 };
    remat_model *model = stack(f, FIRST, "accumulate=1");
    remat_trainer *trainer = open_trainer(f, model, &data, NULL);
    float *before[64] = {0};
    remat_parameter about;
    size_t count = remat_trainer_parameter_count(trainer);
    for (size_t p = 0; p < count; p++)
        before[p] = copy_parameter(f, trainer, p, &about);
    for (int i = 0; i < 6; i++)
        one_step(f, trainer);
    for (size_t p = 0; p < count; p++) {
        float *after = copy_parameter(f, trainer, p, &about);
        bool frozen = is_frozen(about.name, FIRST), same = memcmp(before[p], after, about.count * sizeof *after) == 0;
        if (same != frozen)
            fail_msg("%s has %s", about.name, same ? "not changed" : "changed");
        if (frozen)
            assert_true(!about.trained && about.moment_count == 0);
        free(before[p]);
        free(after);
    }
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_summary(void **state)
{
    fixture *f = *state;
    remat_model *model = stack(f, 2, "accumulate=1");
    char text[8192] = "";
    FILE *stream = tmpfile();
    assert_non_null(stream);
    expect_ok(f, remat_model_write_summary(model, stream, true));
    rewind(stream);
    assert_true(fread(text, 1, sizeof text - 1, stream) > 0);
    fclose(stream);
    assert_non_null(strstr(text, "\"frozen_parameters\": 4352")); /* 2 * 64 + 64 + 64 * 64 + 64 */
    assert_int_equal(remat_model_parameter_count(model), 128 + 3 * (64 * 64 + 64) + 128 + (64 * 64 + 64) + 65);
    remat_model_destroy(model);
}

/* Moments, sums of gradients, and activations; the prediction of memory holds. */
static void test_frozen_layers_take_less(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_trainer_figures figures[2];
    static const char *const sums[] = {"accumulate=1", "accumulate=2"};
    for (int sum = 0; sum < 2; sum++) {
        for (int frozen = 0; frozen < 2; frozen++) {
            remat_model *model = stack(f, frozen ? 8 : 0, sums[sum]);
            remat_trainer *trainer = open_trainer(f, model, &data, NULL);
            remat_trainer_get_figures(trainer, &figures[frozen]);
            remat_run_result result;
            expect_ok(f, remat_trainer_run(trainer, NULL, &result));
            assert_int_equal(result.allocated_bytes, figures[frozen].total_bytes);
            remat_trainer_destroy(trainer);
            remat_model_destroy(model);
        }
        const uint64_t trained = (64 * 4 + 64); /* out: 64 weights, and a bias, each placed at a multiple of 64 */
        assert_int_equal(figures[1].optimizer_bytes, 2 * trained);
        assert_int_equal(figures[1].gradient_bytes, sum ? trained : 0);
        assert_int_equal(figures[1].parameters, 65);
        assert_int_equal(figures[0].weight_bytes, figures[1].weight_bytes);
        /* Without a backward pass, two activations are live at once: 16 samples of 64 values, in and out of a layer. */
        assert_true(figures[1].peak_bytes < figures[0].peak_bytes / 3);
    }
}

static void test_plans_have_the_same_bits(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    static const char *const strategies[] = {"none", "full", "every-nth:2"};
    double losses[3];
    for (int s = 0; s < 3; s++) {
        remat_model *model = stack(f, 4, "accumulate=1");
        remat_trainer *trainer = open_trainer(f, model, &data, strategies[s]);
        for (int i = 0; i < 6; i++)
            losses[s] = one_step(f, trainer).loss;
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
    assert_true(losses[0] == losses[1] && losses[0] == losses[2]);
}

static void test_refused(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:4")));
    expect_status(f, remat_model_add_layer(model, "dropout", REMAT_PROPERTIES("trainable=no")), REMAT_INVALID);
    expect_message(f, "trainable: 'no' is neither true nor false");
    expect_ok(f,
              remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=4", "trainable=false")));
    expect_ok(f,
              remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=b", "unit=4", "shared_from=a")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_status(f, remat_model_compile(model), REMAT_INVALID);
    expect_message(f, "freeze both or neither");
    remat_model_destroy(model);

    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:4")));
    expect_ok(f,
              remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=4", "trainable=false")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_status(f, remat_model_compile(model), REMAT_INVALID);
    expect_message(f, "there is nothing to train");
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_only_trained_layers_change),
        FIXTURE_TEST(test_summary),
        FIXTURE_TEST(test_frozen_layers_take_less),
        FIXTURE_TEST(test_plans_have_the_same_bits),
        FIXTURE_TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
