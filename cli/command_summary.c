#include "command.h"

enum { OPTION_JSON = 256, OPTION_ORDER };

typedef struct summary_command {
    remat_context *context;
    const char *file;
    uint64_t batch; /* 0: the model's own */
    bool order, json;
} summary_command;

static const struct argp_option options[] = {
    {"order", OPTION_ORDER, NULL, 0, "print the five steps of every layer and the lives of all tensors instead", 0},
    {"batch", 'b', "N", 0, "with batches of N samples instead of what the model says", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    summary_command *command = state->input;
    switch (key) {
    case 'b':
        command->batch = command_count(state, command->context, argument);
        if (command->batch == 0)
            argp_error(state, "--batch takes a number from 1 on");
        break;
    case OPTION_ORDER: command->order = true; break;
    case OPTION_JSON: command->json = true; break;
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

static const struct argp argp = {options,
                                 parse,
                                 "MODEL.ini",
                                 "Show what a model consists of: its layers with their shapes, parameters and bytes. "
                                 "Composite layers stand as their "
                                 "parts.\v"
                                 "Example:\n  remat summary model.ini\n  remat summary model.ini --batch 64 --json\n  "
                                 "remat summary model.ini --order",
                                 NULL,
                                 NULL,
                                 NULL};

static remat_status read_model(const summary_command *command, remat_model **model)
{
    FILE *stream;
    const char *name;
    remat_status status = command_open(command->context, command->file, &stream, &name);
    if (status != REMAT_OK)
        return status;
    status = remat_model_read(command->context, stream, name, model);
    command_close(stream);
    if (status != REMAT_OK)
        command_fail(command->context, status);
    return status;
}

static remat_status print(const summary_command *command, remat_model *model)
{
    remat_status status = REMAT_OK;
    char batch[40];
    snprintf(batch, sizeof batch, "batch_size=%llu", (unsigned long long)command->batch);
    if (command->batch)
        status = remat_model_set(model, REMAT_PROPERTIES(batch));
    if (status == REMAT_OK)
        status = command->order ? remat_model_write_order(model, stdout, command->json)
                                : remat_model_write_summary(model, stdout, command->json);
    if (status != REMAT_OK)
        command_fail(command->context, status);
    return status;
}

int command_summary(remat_context *context, int argc, char **argv)
{
    summary_command command = {.context = context};
    command_parse(&argp, argc, argv, &command);
    remat_model *model;
    remat_status status = read_model(&command, &model);
    if (status != REMAT_OK)
        return (int)status;
    status = print(&command, model);
    remat_model_destroy(model);
    return (int)status;
}
