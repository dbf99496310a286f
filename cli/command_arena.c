#include "graph_arena.h"
#include "graph_file.h"
#include "onnx_file.h"
#include "shown.h"
#include "terminal.h"
#include "waiting.h"

#include <stdlib.h>

enum { OPTION_JSON = 256, OPTION_EFFORT };

typedef struct arena_command {
    remat_context *context;
    const char *file, *graph;
    remat_arena_options options;
    bool limited, json; /* limited: a capacity was given; 0 bytes are one, too */
} arena_command;

static const struct argp_option options[] = {
    {"capacity", 'c', "SIZE", 0, "stop at the first placement within SIZE: 512, 64KiB, 8GB; exit 4 if none is found",
     0},
    {"alignment", 'a', "N", 0, "every offset is a multiple of N bytes (default: 1)", 0},
    {"effort", OPTION_EFFORT, "N", 0, "visit at most N search nodes (default: 1000000); 0: heuristics only", 0},
    {"profile", 'p', "GRAPH", 0, "of the plan of a graph: the graph that it is for", 0},
    {"json", OPTION_JSON, NULL, 0, "print rows and figures as JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arena_command *command = state->input;
    switch (key) {
    case 'c':
        command->options.capacity = command_size(state, command->context, argument);
        command->limited = true;
        break;
    case 'a':
        command->options.alignment = command_number(state, command->context, "--alignment", UINT64_MAX, argument);
        break;
    case OPTION_EFFORT: command->options.effort = command_count(state, command->context, argument); break;
    case 'p': command->graph = argument; break;
    case OPTION_JSON: command->json = true; break;
    case ARGP_KEY_ARG: command_take(state, "FILE", argument, &command->file); break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state,
                       "FILE is missing: a CSV of lifetimes, a graph or the plan of one, or - for standard input");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Place the tensors of FILE in one arena: tensors that are live at the same time never share bytes, and the "
           "arena is as small as the search can make it. FILE is a CSV file with the columns id, lower, upper and "
           "size; a tensor is live from lower until just before upper. The rows are printed with a column offset. FILE "
           "may also be a graph, whose rows are the tensors of the schedule that keeps everything, or the plan of a "
           "graph, whose rows are those of its schedule.\v"
           "Examples:\n"
           "  remat arena lifetimes.csv > placed.csv\n"
           "  remat arena lifetimes.csv --alignment 64 --json\n"
           "  remat arena plan.json --profile graph.json",
};

static remat_status read_rows(remat_context *context, const file_bytes *file, remat_lifetime_table **table)
{
    FILE *stream = file_bytes_open(file);
    remat_status status = stream ? remat_lifetime_table_read(context, stream, file->name, table) : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

/* The live ranges of a graph, or of a plan of one. */
static remat_status read_graph(const arena_command *command, const file_bytes *file, remat_file_kind kind,
                               remat_lifetime_table **table)
{
    const bool is_plan = kind == REMAT_FILE_GRAPH_PLAN;
    const import_settings settings = {0};
    remat_graph *graph = NULL;
    remat_status status;
    if (is_plan && !command->graph) {
        fprintf(stderr, "remat: %s: this is the plan of a graph, which has no sizes; --profile GRAPH names the graph\n",
                shown(file->name));
        return REMAT_INVALID;
    }
    status = is_plan                   ? graph_file_load(command->context, command->graph, &graph)
             : kind == REMAT_FILE_ONNX ? onnx_file_import(command->context, file, &settings, &graph)
                                       : graph_file_read(command->context, file, &graph);
    if (status == REMAT_OK)
        status = graph_arena_read(command->context, is_plan ? file : NULL, graph, table);
    remat_graph_destroy(graph);
    return status;
}

/* Whether the file is one of ours that has no live ranges. A CSV of any columns goes to the reader, which says what is missing. */
static bool has_no_rows(const file_bytes *file, remat_file_kind kind)
{
    return kind == REMAT_FILE_PLAN || kind == REMAT_FILE_RUN || kind == REMAT_FILE_MODEL || kind == REMAT_FILE_OTHER ||
           (kind == REMAT_FILE_PROFILE && file->count && file->bytes[0] == '{');
}

static remat_status read_table(const arena_command *command, remat_lifetime_table **table)
{
    file_bytes file;
    remat_file_kind kind;
    *table = NULL;
    remat_status status = file_bytes_read(command->context, command->file, &file);
    if (status == REMAT_OK)
        status = file_bytes_tell_or(command->context, &file, REMAT_FILE_LIFETIMES, &kind);
    if (status == REMAT_OK && has_no_rows(&file, kind)) {
        fprintf(stderr, "remat: %s: no live ranges; FILE is a CSV of lifetimes, a graph, or the plan of a graph\n",
                shown(file.name));
        status = REMAT_BAD_INPUT;
    }
    if (status == REMAT_OK)
        status = kind == REMAT_FILE_GRAPH || kind == REMAT_FILE_GRAPH_PLAN || kind == REMAT_FILE_ONNX
                     ? read_graph(command, &file, kind, table)
                     : read_rows(command->context, &file, table);
    file_bytes_free(&file);
    return status;
}

static void print_words(const remat_lifetime_table *table, const remat_arena_result *result)
{
    char height[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], bound[REMAT_COUNT_TEXT];
    fprintf(stderr, "%zu tensors in %s bytes (%s)", remat_lifetime_table_count(table),
            remat_count_print(result->height, height), remat_size_print(result->height, size));
    if (result->height == result->lower_bound)
        fprintf(stderr, ", proven: no placement needs less\n");
    else
        fprintf(stderr, ", not proven to be the least; the lower bound is %s (%.2f %% less)\n",
                remat_count_print(result->lower_bound, bound),
                100.0 * (1.0 - (double)result->lower_bound / (double)result->height));
}

/* REMAT_OK or REMAT_INFEASIBLE: the rows have offsets, and another algorithm than the one that found them agrees. */
static remat_status place(const arena_command *command, remat_lifetime_table *table, remat_arena_result *result)
{
    const remat_arena_options *wanted = &command->options;
    waiting_for("searching for a placement (--effort 0 takes the first good one)");
    remat_status status = remat_lifetime_table_place(table, wanted, result);
    waiting_end();
    if (status != REMAT_OK && status != REMAT_INFEASIBLE) {
        command_fail(command->context, status);
        return status;
    }
    remat_status checked = remat_lifetime_table_check(table, wanted->alignment, result->height);
    if (checked != REMAT_OK) {
        command_fail(command->context, checked);
        return checked;
    }
    return command->limited && result->height > wanted->capacity ? REMAT_INFEASIBLE : REMAT_OK;
}

static void print_miss(const arena_command *command, const remat_arena_result *result)
{
    bool impossible = result->lower_bound > command->options.capacity;
    fprintf(stderr, "remat: %s fits into %llu bytes; the best placement found needs %llu and is still printed\n",
            impossible ? "no placement" : "no placement was found that", (unsigned long long)command->options.capacity,
            (unsigned long long)result->height);
}

/* The rows are a file's: a terminal gets no control character of them. */
static remat_status print_rows(const arena_command *command, const remat_lifetime_table *table,
                               const remat_arena_result *result, bool fits)
{
    if (command->json)
        return remat_lifetime_table_write_json(table, &command->options, result, fits, stdout);
    if (!terminal_is_output())
        return remat_lifetime_table_write(table, stdout);
    char *text = NULL;
    size_t length;
    FILE *copy = open_memstream(&text, &length);
    remat_status status = copy ? remat_lifetime_table_write(table, copy) : REMAT_NO_MEMORY;
    if (copy && fclose(copy) != 0)
        status = REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        shown_lines(stdout, text);
    free(text);
    return status;
}

int command_arena(remat_context *context, int argc, char **argv)
{
    arena_command command = {.context = context};
    remat_arena_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    remat_lifetime_table *table;
    remat_arena_result result;
    remat_status status = read_table(&command, &table);
    if (status != REMAT_OK)
        return (int)status;
    status = place(&command, table, &result);
    int code = (int)status;
    if (status == REMAT_OK || status == REMAT_INFEASIBLE) {
        bool fits = status == REMAT_OK;
        status = print_rows(&command, table, &result, fits);
        print_words(table, &result);
        if (!fits)
            print_miss(&command, &result);
        if (status != REMAT_OK)
            code = command_fail(context, status);
    }
    remat_lifetime_table_destroy(table);
    return code;
}
