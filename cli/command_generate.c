#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "model_file.h"

enum { OPTION_SEED = 256, OPTION_KERNELS };

typedef struct generate_command {
    remat_context *context;
    const char *file, *weights;
    remat_train_options options;
    remat_generate_options generate;
} generate_command;

static const struct argp_option options[] = {
    {"weights", 'w', "FILE", 0, "the trained weights, as `remat train --save` writes them (required)", 0},
    {"prompt", 'p', "TEXT", 0, "what to go on from (default: a new line)", 0},
    {"count", 'n', "N", 0, "bytes to write (default: 200)", 0},
    {"temperature", 't', "X", 0, "0 takes the likeliest byte every time, 1 draws as the model says (default: 0.8)", 0},
    {"seed", OPTION_SEED, "N", 0, "of the drawing (default: 0)", 0},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores)", 1},
    {"kernels", OPTION_KERNELS, "NAME", 0, "fast (default) or reference", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    generate_command *command = state->input;
    char *end;
    switch (key) {
    case 'w': command->weights = argument; break;
    case 'p': command->generate.prompt = argument; break;
    case 'n': command->generate.count = command_count(state, command->context, argument); break;
    case 't':
        command->generate.temperature = strtod(argument, &end);
        if (*end || end == argument || !(command->generate.temperature >= 0))
            argp_error(state, "--temperature takes a number from 0 on, not '%s'", argument);
        break;
    case 'j': command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_SEED: command->generate.seed = command_count(state, command->context, argument); break;
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
    "Print a text and let a trained model of bytes go on with it.\v"
    "Example:\n  remat generate gpt.ini --weights gpt.safetensors --prompt 'static int ' --count 300",
    NULL,
    NULL,
    NULL};

static void emit(void *user, unsigned char byte)
{
    (void)user;
    putchar(byte);
    fflush(stdout);
}

int command_generate(remat_context *context, int argc, char **argv)
{
    generate_command command = {.context = context};
    remat_train_options_init(&command.options);
    remat_generate_options_init(&command.generate);
    command.options.batch_size = 1;
    command_parse(&argp, argc, argv, &command);
    remat_model *model;
    remat_status status = model_file_read_model(context, command.file, &model);
    if (status != REMAT_OK)
        return (int)status;
    remat_predictor *predictor = NULL;
    status = remat_predictor_create(model, command.weights, &command.options, &predictor);
    if (status == REMAT_OK && command.generate.prompt)
        fputs(command.generate.prompt, stdout);
    if (status == REMAT_OK)
        status = remat_predictor_generate(predictor, &command.generate, emit, NULL);
    if (status == REMAT_OK)
        putchar('\n');
    else
        command_fail(context, status);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    return (int)status;
}
