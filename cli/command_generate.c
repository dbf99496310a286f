#include <stdlib.h>

#include "model_options.h"
#include "model_set.h"
#include "shown.h"
#include "terminal.h"

enum { OPTION_SEED = MODEL_KEYS_END };

typedef struct generate_command {
    model_options given;
    remat_generate_options generate;
} generate_command;

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {MODEL_ROW_MAP, 0},
    {"prompt", 'p', "TEXT", 0, "the text to continue (default: a new line)", 0},
    {"count", 'n', "N", 0, "bytes to write (default: 200)", 0},
    {"temperature", 't', "X", 0,
     "0 always takes the most likely byte, 1 draws with the model's probabilities (default: 0.8)", 0},
    {"seed", OPTION_SEED, "N", 0, "seed of the random draws (default: 0)", 0},
    {MODEL_ROW_THREADS, 1},
    {MODEL_ROW_KERNELS, 1},
    {MODEL_ROW_DEVICE, 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    generate_command *command = state->input;
    char *end;
    switch (key) {
    case 'p': command->generate.prompt = argument; break;
    case 'n': command->generate.count = command_count(state, command->given.context, argument); break;
    case 't':
        command->generate.temperature = strtod(argument, &end);
        if (*end || end == argument || !(command->generate.temperature >= 0))
            argp_error(state, "--temperature takes a number from 0 on, not '%s'", shown(argument));
        break;
    case OPTION_SEED: command->generate.seed = command_count(state, command->given.context, argument); break;
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Print a text and continue it with a trained model of bytes.\v"
           "Example:\n  remat generate gpt.ini --weights gpt.safetensors --prompt '17:45 is' --count 300",
    .children = model_set_children,
};

/* What a model writes is raw bytes. A terminal gets no control character of it but newlines and tabs; a character of
 * several bytes waits here until it is whole. */
typedef struct emitter {
    bool terminal;
    char bytes[5];
    size_t count;
} emitter;

static void flush_character(emitter *to)
{
    to->bytes[to->count] = '\0';
    shown_lines(stdout, to->bytes);
    to->count = 0;
}

static void show_byte(emitter *to, unsigned char byte)
{
    if (to->count && (byte & 0xc0) != 0x80)
        flush_character(to);
    if (byte == 0) {
        fputs("\\x00", stdout);
        return;
    }
    to->bytes[to->count++] = (char)byte;
    unsigned char first = (unsigned char)to->bytes[0];
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (to->count == wanted)
        flush_character(to);
}

static void emit(void *user, unsigned char byte)
{
    emitter *to = user;
    if (to->terminal)
        show_byte(to, byte);
    else
        putchar(byte);
    fflush(stdout);
}

static remat_status generate(void *user, remat_model *model)
{
    const generate_command *command = user;
    remat_predictor *predictor = NULL;
    remat_status status = remat_predictor_create(model, command->given.weights, &command->given.train, &predictor);
    emitter to = {.terminal = terminal_is_output()};
    for (const char *at = command->generate.prompt; status == REMAT_OK && at && *at; at++)
        emit(&to, (unsigned char)*at);
    if (status == REMAT_OK)
        status = remat_predictor_generate(predictor, &command->generate, emit, &to);
    if (status == REMAT_OK) {
        flush_character(&to);
        putchar('\n');
    }
    remat_predictor_destroy(predictor);
    return status;
}

int command_generate(remat_context *context, int argc, char **argv)
{
    generate_command command;
    model_options_init(context, &command.given);
    remat_generate_options_init(&command.generate);
    command.given.needs_weights = true;
    command.given.train.batch_size = 1;
    command_parse(&argp, argc, argv, &command);
    return model_options_run(&command, generate);
}
