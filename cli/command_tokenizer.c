#include "command.h"
#include "output_path.h"
#include "run_text.h"
#include "shown.h"
#include "terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_JSON = 256,
    OPTION_VOCAB,
    OPTION_LEAST,
    OPTION_SPECIAL,
    OPTION_PATTERN,
    OPTION_NO_SPECIAL,
    OPTION_LINES,
    OPTION_LENGTH,
    OPTION_NO_PACK
};

typedef enum tokenizer_action {
    ACTION_NONE,
    ACTION_TRAIN,
    ACTION_ENCODE,
    ACTION_DECODE,
    ACTION_SAMPLES
} tokenizer_action;

typedef struct tokenizer_command {
    remat_context *context;
    tokenizer_action action;
    const char **paths; /* behind the action; as many as there are arguments */
    size_t path_count;
    const char *output, *text;
    remat_tokenizer_options options;
    remat_samples_options samples;
    bool json, no_special, lines;
} tokenizer_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "train: the tokenizer.json to write (required)", 0},
    {"vocab", OPTION_VOCAB, "N", 0,
     "train: how many tokens, including the 256 bytes and special tokens (default: 1000)", 0},
    {"least", OPTION_LEAST, "N", 0, "train: pairs that occur less often are not merged (default: 2)", 0},
    {"special", OPTION_SPECIAL, "TOKENS", 0,
     "train: special tokens, separated by blanks, with the ids 0, 1, ... (default: <|endoftext|>)", 0},
    {"pattern", OPTION_PATTERN, "REGEX", 0,
     "train: the regular expression that cuts texts into words (default: GPT-2's)", 0},
    {"text", 't', "TEXT", 0, "encode: this text instead of a file", 1},
    {"lines", OPTION_LINES, NULL, 0, "encode: every line is a text of its own", 1},
    {"no-special", OPTION_NO_SPECIAL, NULL, 0,
     "encode: no special tokens around the text; decode: leave special tokens out", 1},
    {"length", OPTION_LENGTH, "N", 0, "samples: tokens in a row (default: 256)", 2},
    {"no-pack", OPTION_NO_PACK, NULL, 0, "samples: every sample has its own row", 2},
    {"json", OPTION_JSON, NULL, 0, "print as JSON; samples: the rows, one per line", 3},
    {0},
};

static tokenizer_action action_of(const char *name)
{
    static const char *const names[] = {"train", "encode", "decode", "samples"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (tokenizer_action)(i + 1);
    return ACTION_NONE;
}

static void take_argument(struct argp_state *state, tokenizer_command *command, const char *argument)
{
    if (command->action == ACTION_NONE) {
        command->action = action_of(argument);
        if (command->action == ACTION_NONE)
            argp_error(state, "the first argument is train, encode, decode or samples, not '%s'", shown(argument));
        return;
    }
    command->paths[command->path_count++] = argument;
}

static void check_arguments(struct argp_state *state, const tokenizer_command *command)
{
    if (command->action == ACTION_NONE)
        argp_error(state, "say train, encode, decode or samples");
    if (command->action == ACTION_TRAIN && command->path_count == 0)
        argp_error(state, "name the files to train on");
    if (command->action == ACTION_TRAIN && !command->output)
        argp_error(state, "--output FILE is missing");
    if (command->action != ACTION_TRAIN && (command->path_count == 0 || command->path_count > 2))
        argp_error(state, "name a tokenizer and one file at most");
    if (command->action == ACTION_SAMPLES && command->path_count != 2)
        argp_error(state, "name a tokenizer and a file with a sample on each line");
    if (command->text && (command->path_count == 2 || command->action != ACTION_ENCODE))
        argp_error(state, "--text is what encode reads instead of a file");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    tokenizer_command *command = state->input;
    remat_context *context = command->context;
    switch (key) {
    case 'o': command->output = argument; break;
    case 't': command->text = argument; break;
    case OPTION_VOCAB:
        command->options.vocabulary = command_number(state, context, "--vocab", UINT64_MAX, argument);
        break;
    case OPTION_LEAST: command->options.least = command_number(state, context, "--least", UINT64_MAX, argument); break;
    case OPTION_SPECIAL: command->options.special = argument; break;
    case OPTION_PATTERN: command->options.pattern = argument; break;
    case OPTION_LENGTH:
        command->samples.length = command_number(state, context, "--length", UINT64_MAX, argument);
        break;
    case OPTION_NO_PACK: command->samples.pack = 0; break;
    case OPTION_LINES: command->lines = true; break;
    case OPTION_NO_SPECIAL: command->no_special = true; break;
    case OPTION_JSON: command->json = true; break;
    case ARGP_KEY_ARG: take_argument(state, command, argument); break;
    case ARGP_KEY_END: check_arguments(state, command); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "train FILE...\nencode TOKENIZER [FILE]\ndecode TOKENIZER [FILE]\nsamples TOKENIZER FILE.jsonl",
    .doc = "Train a tokenizer on texts, encode a text as token ids, decode ids, or show what is learned from a file of "
           "samples. TOKENIZER is a tokenizer.json or the folder of a model; without FILE, encode and decode read "
           "standard input.\v"
           "Examples:\n"
           "  remat tokenizer train docs/*.md --vocab 2000 -o tokenizer.json\n"
           "  remat tokenizer encode tokenizer.json --text 'Hello world'\n"
           "  echo 72 257 290 | remat tokenizer decode tokenizer.json\n"
           "  remat tokenizer samples MODEL chats.jsonl --length 512",
};

/* ---- train ---- */

static remat_status train(const tokenizer_command *command)
{
    remat_context *context = command->context;
    remat_tokenizer *tokenizer;
    remat_status status = output_path_check(command->output, true);
    if (status == REMAT_OK)
        status = output_path_check_inputs(command->output, command->paths, command->path_count);
    if (status != REMAT_OK)
        return status;
    status = remat_tokenizer_train(context, command->paths, command->path_count, &command->options, &tokenizer);
    if (status == REMAT_OK)
        status = remat_tokenizer_save(tokenizer, command->output);
    if (status != REMAT_OK)
        command_fail(context, status);
    else if (command->json)
        printf("{\"tokens\": %llu, \"asked\": %llu}\n", (unsigned long long)remat_tokenizer_size(tokenizer),
               (unsigned long long)command->options.vocabulary);
    else
        printf("%llu tokens in %s\n", (unsigned long long)remat_tokenizer_size(tokenizer), shown(command->output));
    remat_tokenizer_destroy(tokenizer);
    return status;
}

/* ---- encode ---- */

static void print_numbers(const char *name, const void *numbers, size_t count, bool is_signed)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%lld", i ? ", " : "",
               is_signed ? (long long)((const int32_t *)numbers)[i] : (long long)((const uint32_t *)numbers)[i]);
    putchar(']');
}

static remat_status encode_text(const tokenizer_command *command, remat_tokenizer *tokenizer, const char *text,
                                size_t bytes)
{
    const int32_t *ids;
    size_t count;
    remat_status status = remat_tokenizer_encode(tokenizer, text, bytes, !command->no_special, &ids, &count);
    if (status != REMAT_OK)
        return status;
    if (command->json) {
        printf("{\"tokens\": %zu, ", count);
        print_numbers("ids", ids, count, true);
        fputs(", ", stdout);
        print_numbers("starts", remat_tokenizer_starts(tokenizer), count, false);
        puts("}");
        return REMAT_OK;
    }
    for (size_t i = 0; i < count; i++)
        printf("%s%d", i ? " " : "", ids[i]);
    putchar('\n');
    return REMAT_OK;
}

static remat_status encode_lines(const tokenizer_command *command, remat_tokenizer *tokenizer, const char *text,
                                 size_t bytes)
{
    remat_status status = REMAT_OK;
    for (size_t at = 0; at < bytes && status == REMAT_OK;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at;
        status = encode_text(command, tokenizer, text + at, length);
        at += length + (end != NULL);
    }
    return status;
}

/* ---- decode ---- */

/* Numbers between blanks, commas or brackets. */
static remat_status parse_ids(const char *text, size_t bytes, const char *name, int32_t **ids, size_t *count)
{
    *count = 0;
    *ids = malloc((bytes / 2 + 1) * sizeof **ids);
    if (!*ids) {
        fputs("remat: out of memory\n", stderr);
        return REMAT_NO_MEMORY;
    }
    for (size_t at = 0; at < bytes;) {
        if (memchr(" \t\r\n,[]", text[at], 8)) {
            at++;
            continue;
        }
        uint64_t id = 0;
        size_t first = at;
        for (; at < bytes && text[at] >= '0' && text[at] <= '9' && id <= INT32_MAX; at++)
            id = id * 10 + (uint64_t)(text[at] - '0');
        if (at == first || id > INT32_MAX) {
            fprintf(stderr, "remat: %s: byte %zu is not the beginning of an id\n", shown(name), first + 1);
            return REMAT_BAD_INPUT;
        }
        (*ids)[(*count)++] = (int32_t)id;
    }
    return REMAT_OK;
}

/* JSON and terminals get nothing on which a terminal would act. A text may hold bytes of 0. */
static void print_decoded(const tokenizer_command *command, const char *text, size_t bytes)
{
    if (!command->json && !terminal_is_output()) {
        fwrite(text, 1, bytes, stdout);
        return;
    }
    if (command->json)
        fputs("{\"text\": \"", stdout);
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
        if (at)
            fputs(command->json ? "\\u0000" : "\\x00", stdout);
        if (command->json)
            run_text_json_letters(stdout, text + at);
        else
            shown_lines(stdout, text + at);
    }
    if (bytes && text[bytes - 1] == '\0')
        fputs(command->json ? "\\u0000" : "\\x00", stdout);
    if (command->json)
        puts("\"}");
}

static remat_status decode(const tokenizer_command *command, remat_tokenizer *tokenizer, const char *text, size_t bytes,
                           const char *name)
{
    int32_t *ids;
    size_t count, length;
    const char *decoded;
    remat_status status = parse_ids(text, bytes, name, &ids, &count);
    if (status == REMAT_OK) {
        status = remat_tokenizer_decode(tokenizer, ids, count, !command->no_special, &decoded, &length);
        if (status == REMAT_OK)
            print_decoded(command, decoded, length);
        else
            command_fail(command->context, status);
    }
    free(ids);
    return status;
}

/* ---- samples ---- */

static remat_status print_rows(const tokenizer_command *command, const remat_samples *samples, uint64_t rows)
{
    size_t length = (size_t)command->samples.length;
    for (uint64_t i = 0; i < rows; i++) {
        remat_samples_row row;
        remat_status status = remat_samples_row_get(samples, i, &row);
        if (status != REMAT_OK)
            return status;
        putchar('{');
        print_numbers("ids", row.ids, length, true);
        fputs(", ", stdout);
        print_numbers("labels", row.labels, length, true);
        fputs(", ", stdout);
        print_numbers("positions", row.positions, length, true);
        fputs(", ", stdout);
        print_numbers("segments", row.segments, length, true);
        puts("}");
    }
    return REMAT_OK;
}

static remat_status show_samples(const tokenizer_command *command, remat_tokenizer *tokenizer)
{
    remat_samples *samples;
    remat_samples_figures figures;
    remat_status status = remat_samples_load(tokenizer, command->paths[1], &command->samples, &samples);
    if (status != REMAT_OK)
        return (remat_status)command_fail(command->context, status);
    remat_samples_figures_get(samples, &figures);
    if (figures.truncated)
        fprintf(stderr, "remat: %llu of %llu samples are longer than %llu tokens and are cut\n",
                (unsigned long long)figures.truncated, (unsigned long long)figures.samples,
                (unsigned long long)command->samples.length + 1);
    if (figures.dropped)
        fprintf(stderr, "remat: %llu of %llu samples have nothing to learn and are dropped\n",
                (unsigned long long)figures.dropped, (unsigned long long)figures.samples);
    if (command->json)
        status = print_rows(command, samples, figures.rows);
    else
        printf("samples    %llu\nrows       %llu of %llu tokens\ntokens     %llu\nlearned    %llu\n",
               (unsigned long long)figures.samples, (unsigned long long)figures.rows,
               (unsigned long long)command->samples.length, (unsigned long long)figures.tokens,
               (unsigned long long)figures.learned);
    remat_samples_destroy(samples);
    return status;
}

/* ---- files ---- */

static remat_status read_all(const char *name, FILE *stream, char **text, size_t *bytes)
{
    size_t room = 0;
    for (size_t got = 1; got;) {
        enum { PART = 1 << 16 };
        if (room - *bytes < PART) {
            room = 2 * room + PART;
            char *moved = realloc(*text, room);
            if (!moved) {
                fputs("remat: out of memory\n", stderr);
                return REMAT_NO_MEMORY;
            }
            *text = moved;
        }
        got = fread(*text + *bytes, 1, PART, stream);
        *bytes += got;
    }
    if (!ferror(stream))
        return REMAT_OK;
    fprintf(stderr, "remat: %s: cannot be read: %s\n", shown(name), strerror(errno));
    return REMAT_IO;
}

static remat_status run_text(const tokenizer_command *command, remat_tokenizer *tokenizer, const char *text,
                             size_t bytes, const char *name)
{
    if (command->action == ACTION_DECODE)
        return decode(command, tokenizer, text, bytes, name);
    remat_status status =
        command->lines ? encode_lines(command, tokenizer, text, bytes) : encode_text(command, tokenizer, text, bytes);
    if (status != REMAT_OK)
        command_fail(command->context, status);
    return status;
}

static remat_status run_file(const tokenizer_command *command, remat_tokenizer *tokenizer)
{
    FILE *stream;
    const char *name;
    char *text = NULL;
    size_t bytes = 0;
    const char *path = command->path_count == 2 ? command->paths[1] : "-";
    remat_status status = command_open(command->context, path, &stream, &name);
    if (status != REMAT_OK)
        return status;
    status = read_all(name, stream, &text, &bytes);
    command_close(command->context, stream, REMAT_OK);
    if (status == REMAT_OK)
        status = run_text(command, tokenizer, text ? text : "", bytes, name);
    free(text);
    return status;
}

static remat_status use_tokenizer(const tokenizer_command *command)
{
    remat_tokenizer *tokenizer;
    remat_status status = remat_tokenizer_load(command->context, command->paths[0], &tokenizer);
    if (status != REMAT_OK)
        return (remat_status)command_fail(command->context, status);
    if (command->action == ACTION_SAMPLES)
        status = show_samples(command, tokenizer);
    else
        status = command->text ? run_text(command, tokenizer, command->text, strlen(command->text), "--text")
                               : run_file(command, tokenizer);
    remat_tokenizer_destroy(tokenizer);
    return status;
}

int command_tokenizer(remat_context *context, int argc, char **argv)
{
    tokenizer_command command = {.context = context};
    remat_tokenizer_options_init(&command.options);
    remat_samples_options_init(&command.samples);
    command.paths = malloc((size_t)argc * sizeof *command.paths);
    if (!command.paths) {
        fputs("remat: out of memory\n", stderr);
        return REMAT_NO_MEMORY;
    }
    command_parse(&argp, argc, argv, &command);
    remat_status status = command.action == ACTION_TRAIN ? train(&command) : use_tokenizer(&command);
    free(command.paths);
    return (int)status;
}
