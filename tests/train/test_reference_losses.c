/* Losses against those of PyTorch from the same weights on the same batches, as recorded in
 * tests/reference/losses_NAME.json by tests/reference/record.sh. Nothing here needs Python. */
#include "support/fixture.h"
#include "support/parameter_copies.h"

#include <jansson.h>
#include <math.h>

#include <remat/train.h>

static const double TOLERANCE = 1e-5;

static json_t *read_record(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/reference/losses_%s.json", name);
    json_error_t error;
    json_t *record = json_load_file(path, 0, &error);
    if (!record)
        fail_msg("%s: %s", path, error.text);
    return record;
}

/* The recorded losses belong to these first weights; where others are made, that is what has to be said. */
static void check_first_weights(fixture *f, const remat_trainer *trainer, double wanted, const char *name)
{
    double squares = 0;
    for (size_t i = 0; i < remat_trainer_parameter_count(trainer); i++) {
        remat_parameter parameter;
        float *values = parameter_copy(f, trainer, i, &parameter);
        for (uint64_t k = 0; k < parameter.count; k++)
            squares += (double)values[k] * (double)values[k];
        free(values);
    }
    if (fabs(squares - wanted) > 1e-7 * wanted)
        fail_msg(
            "%s: the first weights are no longer those of the record (squares sum to %.10g, not %.10g): if that is "
            "meant, run tests/reference/record.sh %s",
            name, squares, wanted, name);
}

static void compare(fixture *f, const char *name, size_t most_steps, const char *strategy, const char *kernels)
{
    json_t *record = read_record(name), *losses = json_object_get(record, "losses");
    size_t steps = json_array_size(losses);
    assert_true(steps >= 12);
    remat_model *model;
    expect_ok(f, remat_model_load(f->context, json_string_value(json_object_get(record, "model")), &model));
    remat_train_options options;
    remat_train_options_init(&options);
    options.steps = steps; /* schedules of the rate end there, though a sanitized build may stop before */
    options.strategy = strategy;
    options.kernels = kernels;
    options.threads = 1; /* the bits do not depend on it, and other tests run beside this one */
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    check_first_weights(f, trainer, json_real_value(json_object_get(record, "weight_squares")), name);
    for (size_t i = 0; i < steps && i < most_steps; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        double wanted = json_real_value(json_array_get(losses, i));
        /* Written so that a NaN fails. */
        if (!(fabs(result.loss - wanted) <= TOLERANCE * fmax(1, fabs(wanted))))
            fail_msg("%s, %s kernels: the loss of step %zu is %.10g, PyTorch's %.10g", name, kernels, i + 1,
                     result.loss, wanted);
    }
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    json_decref(record);
}

static void test_gpt(void **state)
{
    compare(*state, "gpt_bench", LESS_WHEN_SANITIZED(20, 1), "none", "fast");
}

static void test_mlp(void **state)
{
    compare(*state, "mlp_bench", LESS_WHEN_SANITIZED(20, 3), "none", "fast");
}

static void test_convolutional(void **state)
{
    compare(*state, "convnet", 20, "none", "fast");
    compare(*state, "convnet", LESS_WHEN_SANITIZED(4, 1), "full", "reference"); /* slow */
}

/* Its blocks are recomputed: dropout must draw the same and batch statistics must count once. Only the first steps, which
 * agree to 2e-8: later the largest of a window or the sign of a unit is another one here and there, by the last bit, and the
 * losses part; those of PyTorch in single and double precision do so too. */
static void test_residual(void **state)
{
    compare(*state, "resnet", 5, NULL, "fast");
    compare(*state, "resnet", LESS_WHEN_SANITIZED(3, 1), "full", "reference");
}

/* Everything else: several inputs, accumulation, clipping, warm-up, cosine, odd windows. */
static void test_many_layers(void **state)
{
    compare(*state, "many_layers", 20, "none", "fast");
    compare(*state, "many_layers", 20, "full", "fast");
    compare(*state, "many_layers", 20, "sqrt", "reference");
}

static void test_image_layers(void **state)
{
    compare(*state, "image_layers", 20, "none", "fast");
    compare(*state, "image_layers", 20, "full", "reference");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_gpt),      FIXTURE_TEST(test_mlp),         FIXTURE_TEST(test_convolutional),
        FIXTURE_TEST(test_residual), FIXTURE_TEST(test_many_layers), FIXTURE_TEST(test_image_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
