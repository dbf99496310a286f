#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "model_file.h"

enum { OPTION_CLASSES = 256, OPTION_SAMPLES, OPTION_BATCH, OPTION_KERNELS };

typedef struct predict_command {
    remat_context *context;
    const char *file, *weights;
    remat_train_options options;
    uint64_t samples;
    bool classes;
} predict_command;

static const struct argp_option options[] = {
    {"weights", 'w', "FILE", 0, "the trained weights, as `remat train --save` writes them (required)", 0},
    {"samples", OPTION_SAMPLES, "N", 0, "only the first N samples of the dataset (default: all)", 0},
    {"classes", OPTION_CLASSES, NULL, 0, "print the position of the largest value of each row instead of the values",
     0},
    {"batch", OPTION_BATCH, "N", 0, "samples at a time (default: the model's)", 1},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores)", 1},
    {"kernels", OPTION_KERNELS, "NAME", 0, "fast (default) or reference", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    predict_command *command = state->input;
    switch (key) {
    case 'w': command->weights = argument; break;
    case 'j': command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_CLASSES: command->classes = true; break;
    case OPTION_SAMPLES:
        command->samples = command_count(state, command->context, argument);
        if (command->samples == 0)
            argp_error(state, "--samples takes a number from 1 on");
        break;
    case OPTION_BATCH: command->options.batch_size = command_batch(state, command->context, argument, NULL); break;
    case OPTION_KERNELS: command->options.kernels = argument; break;
    case ARGP_KEY_ARG:
        if (command->file)
            argp_error(state, "one MODEL.ini is enough; '%s' is a second", argument);
        command->file = argument;
        break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state, "MODEL.ini is missing: a model, or - for standard input");
        if (!command->weights)
            argp_error(state, "--weights FILE is missing: `remat train MODEL.ini --save FILE` writes one");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    options,
    parse,
    "MODEL.ini",
    "Run a trained model on the samples of its dataset, in their order, and print one line of "
    "comma-separated values for each row of its output.\v"
    "Example:\n  remat predict spirals.ini --weights spirals.safetensors --classes",
    NULL,
    NULL,
    NULL};

static void print_row(const float *values, uint64_t count, bool classes)
{
    if (classes) {
        uint64_t best = 0;
        for (uint64_t i = 1; i < count; i++)
            if (values[i] > values[best])
                best = i;
        printf("%llu\n", (unsigned long long)best);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        printf(i ? ",%.9g" : "%.9g", (double)values[i]);
    putchar('\n');
}

static remat_status predict(const predict_command *command, remat_predictor *predictor)
{
    uint64_t samples = remat_predictor_samples(predictor);
    if (command->samples && command->samples < samples)
        samples = command->samples;
    remat_prediction prediction;
    for (uint64_t first = 0; first < samples; first += prediction.batch) {
        remat_status status = remat_predictor_run_samples(predictor, first, &prediction);
        if (status != REMAT_OK)
            return status;
        uint64_t shown = prediction.batch < samples - first ? prediction.batch : samples - first;
        uint64_t rows = shown * prediction.shape[0] * prediction.shape[1];
        for (uint64_t r = 0; r < rows; r++)
            print_row(prediction.values + r * prediction.shape[2], prediction.shape[2], command->classes);
    }
    return samples ? REMAT_OK : remat_context_error(command->context)->status;
}

int command_predict(remat_context *context, int argc, char **argv)
{
    predict_command command = {.context = context};
    remat_train_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    remat_model *model;
    remat_status status = model_file_read_model(context, command.file, &model);
    if (status != REMAT_OK)
        return (int)status;
    remat_predictor *predictor = NULL;
    status = remat_predictor_create(model, command.weights, &command.options, &predictor);
    if (status == REMAT_OK)
        status = predict(&command, predictor);
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    return (int)status;
}
