/* Trains a multi-layer perceptron to tell whether a point lies inside a ring. The model, with a block of two layers,
 * is built by calls, and a function makes the samples.
 *
 *     cc -O2 examples/train_mlp.c -Iinclude -Lbuild -lremat -lm -Wl,-rpath,build -o train_mlp && ./train_mlp */
#include <math.h>
#include <stdio.h>

#include <remat/remat.h>

/* Writes sample number n: a point in the plane. Its label is 1 if its distance from the origin is between 0.5 and 1. */
static remat_status sample(void *user, uint64_t n, void *const *inputs, void *labels)
{
    const remat_random *stream = user;
    float *point = inputs[0];
    for (uint64_t i = 0; i < 2; i++)
        point[i] = 3 * remat_random_uniform(stream, 2 * n + i) - 1.5f;
    float distance = hypotf(point[0], point[1]);
    *(int32_t *)labels = distance > 0.5f && distance < 1.0f;
    return REMAT_OK;
}

static remat_status build(remat_model *model)
{
    remat_status status = remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=point", "input_shape=1:1:2"));
    static const char *const names[] = {"name=fc1", "name=fc2", "name=fc3"};
    for (int i = 0; i < 3 && status == REMAT_OK; i++)
        status =
            remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES(names[i], "unit=64", "activation=gelu"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=2"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(model, "cross_entropy", REMAT_PROPERTIES("name=loss"));
    if (status == REMAT_OK)
        status = remat_model_add_block(model, REMAT_PROPERTIES("fc1", "fc2"));
    if (status == REMAT_OK)
        status = remat_model_set(model, REMAT_PROPERTIES("batch_size=256", "epochs=40"));
    if (status == REMAT_OK)
        status = remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01"));
    return status == REMAT_OK ? remat_model_compile(model) : status;
}

static remat_status train(remat_model *model)
{
    remat_random stream = remat_random_stream(7, 0, 0);
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = sample;
    options.sample_user = &stream;
    options.samples = 4096;
    options.validation_samples = 1024;
    remat_trainer *trainer;
    remat_status status = remat_trainer_create(model, &options, &trainer);
    if (status != REMAT_OK)
        return status;
    remat_run_result result;
    remat_validation_result validation;
    remat_trainer_figures figures;
    status = remat_trainer_run(trainer, NULL, &result);
    if (status == REMAT_OK)
        status = remat_trainer_validate(trainer, &validation);
    if (status == REMAT_OK) {
        remat_trainer_get_figures(trainer, &figures);
        printf("%llu steps, accuracy %.1f %%, %llu bytes planned, %llu allocated\n", (unsigned long long)result.steps,
               100 * validation.accuracy, (unsigned long long)figures.total_bytes,
               (unsigned long long)result.allocated_bytes);
    }
    remat_trainer_destroy(trainer);
    return status;
}

int main(void)
{
    remat_context *context;
    remat_model *model;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    remat_status status = remat_model_create(context, &model);
    if (status == REMAT_OK)
        status = build(model);
    if (status == REMAT_OK)
        status = train(model);
    if (status != REMAT_OK)
        fprintf(stderr, "%s\n", remat_context_message(context));
    remat_model_destroy(model);
    remat_context_destroy(context);
    return (int)status;
}
