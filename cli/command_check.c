#include "command.h"
#include "model_file.h"

#include <string.h>

enum { OPTION_JSON = 256 };

typedef struct check_command {
    const char *plan, *profile;
    bool json;
} check_command;

static const struct argp_option options[] = {
    {"profile", 'p', "FILE", 0, "the profile that the plan is for (required)", 0},
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
            argp_error(state, "--profile FILE is missing: a plan is checked against the profile it was made for");
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
    .doc = "Replay the schedule of PLAN step by step and compare its figures with those in the file. "
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
static remat_status read_profile(remat_context *context, const char *path, remat_profile **profile)
{
    remat_model *model;
    remat_status status = model_file_read(context, path, profile, &model);
    if (!model)
        return status;
    fprintf(stderr,
            "remat: %s: this is a model, not a profile; `remat plan MODEL.ini --profile-out FILE` writes the profile "
            "that its plans are for\n",
            path);
    remat_model_destroy(model);
    return REMAT_BAD_INPUT;
}

int command_check(remat_context *context, int argc, char **argv)
{
    check_command command = {0};
    command_parse(&argp, argc, argv, &command);
    remat_profile *profile;
    remat_status status = read_profile(context, command.profile, &profile);
    if (status != REMAT_OK)
        return (int)status;
    FILE *stream;
    const char *name;
    remat_figures figures;
    status = command_open(command.plan, &stream, &name);
    if (status == REMAT_OK)
        status = command_close(context, stream, remat_plan_check(context, stream, name, profile, &figures));
    if (status == REMAT_OK)
        print_figures(&figures, command.json);
    remat_profile_destroy(profile);
    return (int)status;
}
