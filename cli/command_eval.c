#include <math.h>
#include <string.h>

#include "command.h"
#include "model_file.h"
#include "run_text.h"

enum { OPTION_BATCH = 256, OPTION_KERNELS, OPTION_JSON };

typedef struct eval_command {
    remat_context *context;
    const char *file, *weights;
    remat_train_options options;
    bool json;
} eval_command;

static const struct argp_option options[] = {
    {"weights", 'w', "FILE", 0, "the trained weights, as `remat train --save` writes them (required)", 0},
    {"batch", OPTION_BATCH, "N", 0, "samples at a time (default: the model's)", 1},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores)", 1},
    {"kernels", OPTION_KERNELS, "NAME", 0, "fast (default) or reference", 1},
    {"json", OPTION_JSON, NULL, 0, "print as JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    eval_command *command = state->input;
    switch (key) {
    case 'w': command->weights = argument; break;
    case 'j': command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_BATCH: command->options.batch_size = command_batch(state, command->context, argument, NULL); break;
    case OPTION_KERNELS: command->options.kernels = argument; break;
    case OPTION_JSON: command->json = true; break;
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
    "Print the loss of trained weights on the model's validation data, and for classes how "
    "often the largest output is the right one.\v"
    "Example:\n  remat eval gpt.ini --weights gpt.safetensors",
    NULL,
    NULL,
    NULL};

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

int command_eval(remat_context *context, int argc, char **argv)
{
    eval_command command = {.context = context};
    remat_train_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    remat_model *model;
    remat_status status = model_file_read_model(context, command.file, &model);
    if (status != REMAT_OK)
        return (int)status;
    remat_trainer *trainer = NULL;
    remat_validation_result result;
    status = remat_trainer_create(model, &command.options, &trainer);
    if (status == REMAT_OK)
        status = remat_trainer_load(trainer, command.weights);
    if (status == REMAT_OK)
        status = remat_trainer_validate(trainer, &result);
    if (status == REMAT_OK)
        print(&result, command.json);
    else
        command_fail(context, status);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return (int)status;
}
