#include <stdlib.h>

#include "generate_folder.h"
#include "model_file.h"
#include "model_options.h"
#include "model_set.h"
#include "shown.h"
#include "terminal.h"

enum {
    OPTION_SEED = MODEL_KEYS_END,
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_STOP,
    OPTION_CACHE,
    OPTION_CHAT,
    MOST_STOPS = 32
};

typedef struct generate_command {
    model_options given;
    remat_generate_options generate;
    remat_text_options text; /* of a folder */
    remat_generator_options generator;
    const char *stops[MOST_STOPS + 1];
    size_t stop_count;
    bool quiet, of_folder; /* `of_folder`: an option was given that only a folder takes */
} generate_command;

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {MODEL_ROW_MAP, 0},
    {"prompt", 'p', "TEXT", 0, "the text to continue (default: a new line)", 0},
    {"count", 'n', "N", 0, "bytes to write; for a folder: tokens (default: 200)", 0},
    {"temperature", 't', "X", 0,
     "0 always takes the most likely byte or token, 1 draws with the model's probabilities (default: 0.8)", 0},
    {"seed", OPTION_SEED, "N", 0, "seed of the random draws (default: 0)", 0},
    {"top-k", OPTION_TOP_K, "N", 0, "for a folder: draw from the N most likely tokens; 0: from all (default: 40)", 0},
    {"top-p", OPTION_TOP_P, "X", 0,
     "for a folder: draw from the most likely tokens whose probabilities add up to X (default: 1)", 0},
    {"stop", OPTION_STOP, "TEXT", 0, "for a folder: stop before TEXT; may be given several times", 0},
    {"chat", OPTION_CHAT, NULL, 0,
     "for a folder: the prompt is a user's message, formatted by the model's chat template", 0},
    {"cache", OPTION_CACHE, "N", 0,
     "for a folder: room for N tokens of prompt and text together (default: 1024, or the model's length if that is "
     "less)",
     0},
    {"quiet", 'q', NULL, 0, "do not print how much memory is used", 1},
    {MODEL_ROW_THREADS, 1},
    {MODEL_ROW_KERNELS, 1},
    {MODEL_ROW_DEVICE, 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    generate_command *command = state->input;
    char *end;
    command->of_folder |= key >= OPTION_TOP_K && key <= OPTION_CHAT;
    switch (key) {
    case 'q': command->quiet = true; break;
    case OPTION_TOP_K: command->text.top_k = command_count(state, command->given.context, argument); break;
    case OPTION_CACHE: command->generator.cache = command_count(state, command->given.context, argument); break;
    case OPTION_CHAT: command->text.chat = 1; break;
    case OPTION_TOP_P:
        command->text.top_p = strtod(argument, &end);
        if (*end || end == argument || !(command->text.top_p > 0 && command->text.top_p <= 1))
            argp_error(state, "--top-p takes a number above 0 and up to 1, not '%s'", shown(argument));
        break;
    case OPTION_STOP:
        if (command->stop_count == MOST_STOPS)
            argp_error(state, "--stop can be given %d times", MOST_STOPS);
        command->stops[command->stop_count++] = argument;
        break;
    case ARGP_KEY_END:
        model_options_parse(key, argument, state);
        if (command->of_folder && !model_file_is_folder(command->given.file))
            argp_error(state, "--top-k, --top-p, --stop, --chat and --cache are for a folder with a language model");
        break;
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
    .doc = "Print a text and continue it, with a trained model of bytes, or with a language model in Hugging Face's "
           "layout, whose keys and values are cached.\v"
           "Examples:\n"
           "  remat generate gpt.ini --weights gpt.safetensors --prompt '17:45 is'\n"
           "  remat generate Qwen2.5-0.5B --adapter adapter --prompt 'What is a GEMM?'",
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

static remat_status write_with_folder(generate_command *command)
{
    remat_text_options *text = &command->text;
    text->prompt = command->generate.prompt;
    text->count = command->generate.count;
    text->temperature = command->generate.temperature;
    text->seed = command->generate.seed;
    text->stops = command->stops;
    command->generator.settings = model_set_settings();
    command->generator.weights = command->given.weights;
    command->generator.threads = command->given.train.threads;
    command->generator.kernels = command->given.train.kernels;
    command->generator.writes_texts = 1;
    command->generator.writes_messages = text->chat;
    return generate_folder(command->given.context, command->given.file, &command->generator, text, command->quiet);
}

int command_generate(remat_context *context, int argc, char **argv)
{
    generate_command command = {0};
    model_options_init(context, &command.given);
    remat_generate_options_init(&command.generate);
    remat_text_options_init(&command.text);
    remat_generator_options_init(&command.generator);
    command.given.needs_weights = true;
    command.given.train.batch_size = 1;
    command_parse(&argp, argc, argv, &command);
    if (model_file_is_folder(command.given.file))
        return (int)write_with_folder(&command);
    return model_options_run(&command, generate);
}
