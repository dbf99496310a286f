/* A problem that is learned in no time: two numbers and the sine of their sum. */
#ifndef TESTS_TRAINER_TOY_H
#define TESTS_TRAINER_TOY_H

#include <math.h>

#include "support/fixture.h"

typedef struct toy {
    uint64_t fail_at; /* this sample cannot be had; UINT64_MAX: none is so */
    uint64_t asked;
    float scale; /* of the labels */
} toy;

static inline remat_status toy_sample(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    toy *data = user;
    data->asked++;
    if (sample == data->fail_at)
        return REMAT_IO;
    test_random random = {sample};
    float *x = inputs[0], *y = labels;
    x[0] = (float)test_random_below(&random, 2001) / 1000 - 1;
    x[1] = (float)test_random_below(&random, 2001) / 1000 - 1;
    y[0] = data->scale * sinf(x[0] + x[1]);
    return REMAT_OK;
}

static inline remat_model *toy_model(fixture *f, const char *optimizer, const char *const *optimizer_properties,
                                     const char *const *settings)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(
        f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=16", "activation=tanh")));
    expect_ok(
        f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=16", "activation=gelu")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, settings));
    expect_ok(f, remat_model_set_optimizer(model, optimizer, optimizer_properties));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static inline remat_train_options toy_options(toy *data)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = toy_sample;
    options.sample_user = data;
    options.samples = 96;
    options.validation_samples = 32;
    options.threads = 1;
    return options;
}

static inline remat_trainer *toy_trainer(fixture *f, remat_model *model, toy *data, uint64_t steps)
{
    remat_train_options options = toy_options(data);
    options.steps = steps;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static inline remat_step_result one_step(fixture *f, remat_trainer *trainer)
{
    remat_step_result result;
    expect_ok(f, remat_trainer_step(trainer, &result));
    return result;
}

#endif
