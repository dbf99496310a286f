#include "command.h"

enum { OPTION_JSON = 256 };

typedef struct layers_command {
    const char *type;
    bool json;
} layers_command;

static const struct argp_option options[] = {{"json", OPTION_JSON, NULL, 0, "print as JSON", 0}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    layers_command *command = state->input;
    switch (key) {
    case OPTION_JSON: command->json = true; break;
    case ARGP_KEY_ARG: command_take(state, "TYPE", argument, &command->type); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[TYPE]",
    .doc = "List the layer types; with TYPE, show the inputs of that type and its properties with their "
           "defaults.\v"
           "Examples:\n  remat layers\n  remat layers conv2d",
};

int command_layers(remat_context *context, int argc, char **argv)
{
    layers_command command = {0};
    command_parse(&argp, argc, argv, &command);
    remat_status status = remat_layer_types_write(context, command.type, stdout, command.json);
    return status == REMAT_OK ? 0 : command_fail(context, status);
}
