#include <string.h>

#include "command.h"
#include "model_file.h"

enum { OPTION_BATCH = 256, OPTION_REPEATS, OPTION_KERNELS };

typedef struct profile_command {
    remat_context *context;
    const char *file, *output;
    remat_train_options options;
    unsigned repeats;
} profile_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write the profile there instead of to standard output", 0},
    {"repeats", OPTION_REPEATS, "N", 0, "steps to measure, of which medians are taken (default: 5)", 0},
    {"batch", OPTION_BATCH, "N", 0, "samples a micro-batch (default: the model's)", 0},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores)", 0},
    {"kernels", OPTION_KERNELS, "NAME", 0, "fast (default) or reference", 0},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    profile_command *command = state->input;
    switch (key) {
    case 'o': command->output = argument; break;
    case 'j': command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_REPEATS: {
        uint64_t repeats = command_count(state, command->context, argument);
        if (repeats == 0 || repeats > 10000)
            argp_error(state, "--repeats takes a number from 1 to 10000, not %s", argument);
        command->repeats = (unsigned)repeats;
        break;
    }
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
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    options,
    parse,
    "MODEL.ini",
    "Time every layer of a model, forward and backward, and write a profile with its bytes and "
    "its costs in nanoseconds. `remat train`, `fit` and `sweep` plan with it (--profile).\v"
    "Example:\n  remat profile gpt.ini -o gpt-profile.json",
    NULL,
    NULL,
    NULL};

int command_profile(remat_context *context, int argc, char **argv)
{
    profile_command command = {.context = context, .repeats = 5};
    remat_train_options_init(&command.options);
    command.options.strategy = "none"; /* every layer runs once, whatever the model's own budget */
    command.options.budget_bytes = REMAT_ANY_BUDGET;
    command_parse(&argp, argc, argv, &command);
    remat_model *model;
    remat_status status = model_file_read_model(context, command.file, &model);
    if (status != REMAT_OK)
        return (int)status;
    remat_trainer *trainer = NULL;
    remat_profile *profile = NULL;
    status = remat_trainer_create(model, &command.options, &trainer);
    if (status == REMAT_OK)
        status = remat_trainer_measure(trainer, command.repeats, &profile);
    if (status == REMAT_OK)
        status = command.output ? remat_profile_save(profile, command.output) : remat_profile_write(profile, stdout);
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_profile_destroy(profile);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return (int)status;
}
