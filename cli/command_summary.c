#include "model_file.h"
#include "model_options.h"
#include "model_set.h"

enum { OPTION_ORDER = MODEL_KEYS_END };

typedef struct summary_command {
    model_options given;
    bool order;
} summary_command;

static const struct argp_option options[] = {
    {"order", OPTION_ORDER, NULL, 0, "print when the five steps of every layer run, and the live ranges of all tensors",
     0},
    {"batch", 'b', "N", 0, "samples in a batch (default: the model's)", 0},
    {"json", MODEL_JSON, NULL, 0, "print as JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    summary_command *command = state->input;
    switch (key) {
    case 'b': return model_options_parse(MODEL_BATCH, argument, state); /* no budget here */
    case OPTION_ORDER: command->order = true; return 0;
    default: return model_options_parse(key, argument, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Show the layers of a model with their shapes, parameters and bytes. "
           "Composite layers are shown as their parts.\v"
           "Examples:\n  remat summary model.ini\n  remat summary model.ini --batch 64 --json\n  "
           "remat summary model.ini --order\n  remat summary Qwen2.5-0.5B",
    .children = model_set_children,
};

static remat_status print(void *user, remat_model *model)
{
    const summary_command *command = user;
    remat_status status = model_file_set_batch(model, command->given.train.batch_size);
    if (status != REMAT_OK)
        return status;
    return command->order ? remat_model_write_order(model, stdout, command->given.json)
                          : remat_model_write_summary(model, stdout, command->given.json);
}

int command_summary(remat_context *context, int argc, char **argv)
{
    summary_command command = {0};
    model_options_init(context, &command.given);
    command_parse(&argp, argc, argv, &command);
    return model_options_run(&command, print);
}
