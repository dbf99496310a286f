/* A step whose data fails has changed nothing, running statistics included, and can be taken again. */
#include "support/parameter_copies.h"
#include "train/trainer_toy.h"

typedef struct failing_data {
    toy data;
    uint64_t fail_after; /* so many samples, once; 0: never */
} failing_data;

static remat_status failing_sample(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    failing_data *of = user;
    if (of->fail_after && --of->fail_after == 0)
        return REMAT_IO;
    return toy_sample(&of->data, sample, inputs, labels);
}

static remat_model *normalizing_model(fixture *f, const char *accumulate)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=6")));
    expect_ok(f, remat_model_add_layer(model, "batch_normalization", REMAT_PROPERTIES("name=norm")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4", accumulate)));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static remat_trainer *failing_trainer(fixture *f, remat_model *model, failing_data *data)
{
    remat_train_options options = toy_options(&data->data);
    options.sample = failing_sample;
    options.sample_user = data;
    options.steps = 10;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static void expect_same_parameters(fixture *f, remat_trainer *one, remat_trainer *other)
{
    for (size_t i = 0; i < remat_trainer_parameter_count(one); i++) {
        remat_parameter about;
        float *values = parameter_copy(f, one, i, &about), *others = parameter_copy(f, other, i, &about);
        assert_memory_equal(values, others, about.count * sizeof *values);
        free(values);
        free(others);
    }
}

static void expect_unchanged(fixture *f, const char *accumulate, uint64_t fail_after)
{
    remat_model *model = normalizing_model(f, accumulate);
    failing_data good = {{.fail_at = UINT64_MAX, .scale = 1}, 0}, bad = good;
    remat_trainer *undisturbed = failing_trainer(f, model, &good), *disturbed = failing_trainer(f, model, &bad);
    remat_step_result result;
    one_step(f, undisturbed); /* so that the statistics are not the first ones */
    one_step(f, disturbed);
    bad.fail_after = fail_after;
    expect_status(f, remat_trainer_step(disturbed, &result), REMAT_IO);
    assert_int_equal(remat_trainer_steps_taken(disturbed), 1);
    expect_same_parameters(f, undisturbed, disturbed);
    assert_true(one_step(f, undisturbed).loss == one_step(f, disturbed).loss);
    expect_same_parameters(f, undisturbed, disturbed);
    remat_trainer_destroy(undisturbed);
    remat_trainer_destroy(disturbed);
    remat_model_destroy(model);
}

static void failed_data(void **state)
{
    fixture *f = *state;
    expect_unchanged(f, "accumulate=1", 2);
    expect_unchanged(f, "accumulate=3", 2);  /* in the first micro-batch */
    expect_unchanged(f, "accumulate=3", 6);  /* in the second */
    expect_unchanged(f, "accumulate=3", 12); /* the last sample of the step */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(failed_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
