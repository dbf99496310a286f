#include "command.h"
#include "graph_check.h"
#include "shown.h"

#include <string.h>

enum { OPTION_JSON = 256 };

typedef struct check_command {
    const char *plan, *profile;
    bool json;
} check_command;

static const struct argp_option options[] = {
    {"profile", 'p', "FILE", 0, "the profile or graph that the plan is for (required)", 0},
    {"json", OPTION_JSON, NULL, 0, "print the figures as JSON", 0},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    check_command *command = state->input;
    switch (key) {
    case 'p': command->profile = argument; break;
    case OPTION_JSON: command->json = true; break;
    case ARGP_KEY_ARG: command_take(state, "PLAN", argument, &command->plan); break;
    case ARGP_KEY_END:
        if (!command->plan)
            argp_error(state, "PLAN is missing: a plan file, or - for standard input");
        if (!command->profile)
            argp_error(state,
                       "--profile FILE is missing: a plan is checked against the profile or graph that it is for");
        if (strcmp(command->plan, "-") == 0 && strcmp(command->profile, "-") == 0)
            argp_error(state, "PLAN and --profile cannot both come from standard input");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "PLAN",
    .doc = "Replay the schedule of PLAN, the plan of a profile or a graph, and compare its figures with those in the "
           "file. "
           "If something is wrong, exit with 7 and name the step, figure or layer.\v"
           "Example:\n  remat plan profile.json --budget 64MiB -o plan.json\n"
           "  remat check plan.json --profile profile.json",
};

static void print_figures(const remat_figures *figures, bool json)
{
    char steps[REMAT_COUNT_TEXT], peak[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT];
    if (json)
        printf("{\"legal\": true, \"steps\": %llu, \"peak_bytes\": %llu, \"total_cost\": %llu, \"kept_bytes\": %llu, "
               "\"recompute_flops\": %llu}\n",
               (unsigned long long)figures->steps, (unsigned long long)figures->peak_bytes,
               (unsigned long long)figures->total_cost, (unsigned long long)figures->kept_bytes,
               (unsigned long long)figures->recompute_flops);
    else
        printf("legal: %s steps, peak %s bytes (%s), cost %s\n", remat_count_print(figures->steps, steps),
               remat_count_print(figures->peak_bytes, peak), remat_size_print(figures->peak_bytes, size),
               remat_count_print(figures->total_cost, cost));
}

/* A model is what people have at hand, so it is told from a file that is nothing at all. */
static remat_status refuse_model(const char *path, bool is_onnx)
{
    fprintf(
        stderr,
        "remat: %s: this is %s, not a profile or a graph; `remat plan` writes what its plans are for: %s--graph-out "
        "FILE the graph\n",
        shown(path), is_onnx ? "an ONNX file" : "a model", is_onnx ? "" : "--profile-out FILE the profile, ");
    return REMAT_BAD_INPUT;
}

static remat_status check_chain(remat_context *context, const file_bytes *file, const check_command *command)
{
    remat_profile *profile = NULL;
    remat_figures figures;
    const char *name;
    FILE *stream = file_bytes_open(file);
    remat_status status = stream ? remat_profile_read(context, stream, file->name, &profile) : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    if (status != REMAT_OK)
        return command_fail(context, status), status;
    status = command_open(context, command->plan, &stream, &name);
    if (status == REMAT_OK)
        status = command_close(context, stream, remat_plan_check(context, stream, name, profile, &figures));
    if (status == REMAT_OK)
        print_figures(&figures, command->json);
    remat_profile_destroy(profile);
    return status;
}

int command_check(remat_context *context, int argc, char **argv)
{
    check_command command = {0};
    command_parse(&argp, argc, argv, &command);
    file_bytes file;
    remat_file_kind kind;
    remat_status status = file_bytes_read(context, command.profile, &file);
    /* Whatever is neither a model nor a graph is read as a profile, so that the message says what a profile would be. */
    if (status == REMAT_OK)
        status = file_bytes_tell_or(context, &file, REMAT_FILE_PROFILE, &kind);
    if (status == REMAT_OK)
        status = file_bytes_refuse_result(&file, kind, false);
    if (status == REMAT_OK)
        status = kind == REMAT_FILE_MODEL || kind == REMAT_FILE_ONNX ? refuse_model(file.name, kind == REMAT_FILE_ONNX)
                 : kind == REMAT_FILE_GRAPH ? graph_check(context, &file, command.plan, command.json)
                                            : check_chain(context, &file, &command);
    file_bytes_free(&file);
    return (int)status;
}
