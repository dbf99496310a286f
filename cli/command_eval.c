#include <math.h>

#include "model_options.h"
#include "run_text.h"

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {MODEL_ROW_BATCH, 1},
    {MODEL_ROW_THREADS, 1},
    {MODEL_ROW_KERNELS, 1},
    {"json", MODEL_JSON, NULL, 0, "print as JSON", 1},
    {0},
};

static const struct argp argp = {
    .options = options,
    .parser = model_options_parse,
    .args_doc = "MODEL.ini",
    .doc = "Print the loss of trained weights on the model's validation data and, for classes, the "
           "accuracy.\v"
           "Example:\n  remat eval gpt.ini --weights gpt.safetensors",
};

static void print(const remat_validation_result *result, bool json)
{
    if (json) {
        run_text_json_number(stdout, "{", "loss", result->loss);
        if (!isnan(result->accuracy))
            run_text_json_number(stdout, ", ", "accuracy", result->accuracy);
        printf(", \"samples\": %llu}\n", (unsigned long long)result->samples);
        return;
    }
    printf("loss %.6f", result->loss);
    if (!isnan(result->accuracy))
        printf("  accuracy %.2f %%", 100 * result->accuracy);
    printf("  over %llu samples\n", (unsigned long long)result->samples);
}

static remat_status evaluate(void *command, remat_model *model)
{
    const model_options *given = command;
    remat_trainer *trainer = NULL;
    remat_validation_result result;
    remat_status status = remat_trainer_create(model, &given->train, &trainer);
    if (status == REMAT_OK)
        status = remat_trainer_load(trainer, given->weights);
    if (status == REMAT_OK)
        status = remat_trainer_validate(trainer, &result);
    if (status == REMAT_OK)
        print(&result, given->json);
    remat_trainer_destroy(trainer);
    return status;
}

int command_eval(remat_context *context, int argc, char **argv)
{
    model_options given;
    model_options_init(context, &given);
    given.needs_weights = true;
    command_parse(&argp, argc, argv, &given);
    return model_options_run(&given, evaluate);
}
