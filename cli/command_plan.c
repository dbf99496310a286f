#include "command.h"
#include "compare.h"
#include "plan_text.h"

#include <string.h>

enum {
    OPTION_COUNT = 256,
    OPTION_LOSSY,
    OPTION_JSON,
    OPTION_NO_SCHEDULE,
    OPTION_ALL_LAYERS,
    OPTION_METHOD,
    OPTION_THREADS,
    OPTION_COMPARE
};

typedef struct plan_command {
    remat_context *context;
    const char *file, *output;
    remat_plan_options options;
    bool json, no_schedule, all_layers, compare;
} plan_command;

static const struct argp_option options[] = {
    {"strategy", 's', "NAME[:ARG]", 0, "how to decide (see below); default: optimal under a budget, none without", 0},
    {"budget", 'b', "SIZE", 0, "the peak may not pass SIZE: 512, 64KiB, 8GB, 1.5GiB", 0},
    {"count", OPTION_COUNT, "WHAT", 0, "with the strategy budget: SIZE limits the 'peak' (default) or the bytes 'kept'",
     0},
    {"allow-lossy", OPTION_LOSSY, NULL, 0, "modes that lose precision may be used", 0},
    {"method", OPTION_METHOD, "NAME", 0, "of optimal: auto (default), exhaustive or intervals", 0},
    {"threads", OPTION_THREADS, "N", 0, "of optimal: use N threads (default: all cores); the plan is the same", 0},
    {"compare", OPTION_COMPARE, NULL, 0, "set all strategies side by side: peak, cost, fits or not", 1},
    {"json", OPTION_JSON, NULL, 0, "print the plan file instead of a table", 1},
    {"output", 'o', "FILE", 0, "write the plan file to FILE", 1},
    {"no-schedule", OPTION_NO_SCHEDULE, NULL, 0, "with --json: print the figures alone", 1},
    {"all-layers", OPTION_ALL_LAYERS, NULL, 0, "show every layer of a long table", 1},
    {0}};

static void set_count(struct argp_state *state, plan_command *command, const char *text)
{
    if (strcmp(text, "peak") == 0)
        command->options.count = REMAT_COUNT_PEAK;
    else if (strcmp(text, "kept") == 0)
        command->options.count = REMAT_COUNT_KEPT;
    else
        argp_error(state, "--count takes 'peak' or 'kept', not '%s'", text);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    plan_command *command = state->input;
    switch (key) {
    case 's': command->options.strategy = argument; break;
    case 'b': command->options.budget_bytes = command_size(state, command->context, argument); break;
    case OPTION_COUNT: set_count(state, command, argument); break;
    case OPTION_LOSSY: command->options.allow_lossy = true; break;
    case OPTION_METHOD: command->options.method = argument; break;
    case OPTION_THREADS: command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_COMPARE: command->compare = true; break;
    case OPTION_JSON: command->json = true; break;
    case 'o': command->output = argument; break;
    case OPTION_NO_SCHEDULE: command->no_schedule = true; break;
    case OPTION_ALL_LAYERS: command->all_layers = true; break;
    case ARGP_KEY_ARG:
        if (command->file)
            argp_error(state, "one FILE is enough; '%s' is a second", argument);
        command->file = argument;
        break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state, "FILE is missing: a profile, or - for standard input");
        if (command->no_schedule && !command->json)
            argp_error(state, "--no-schedule goes with --json: only the plan file has a schedule");
        if (command->compare && (command->output || command->options.strategy))
            argp_error(state, "--compare takes all strategies and writes no plan: leave out --strategy and --output");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Lists the strategies of the library behind the options. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA)
        return (char *)(uintptr_t)text;
    char *extra = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&extra, &bytes);
    if (!to)
        return NULL;
    fputs("Strategies:\n", to);
    for (size_t i = 0; remat_strategy_list(i); i++) {
        const remat_strategy_info *info = remat_strategy_list(i);
        int used = fprintf(to, "  %s%s", info->name, info->argument);
        fprintf(to, "%*s%s\n", used < 20 ? 20 - used : 1, "", info->summary);
    }
    fputs("\nExample:\n  remat plan profile.json --strategy every-nth:2\n  remat plan profile.json --budget 64MiB -o "
          "plan.json\n",
          to);
    fclose(to);
    return extra;
}

static const struct argp argp = {
    options, parse,       "FILE", "Decide which layers of FILE, a profile, to keep and which to recompute.\v",
    NULL,    help_filter, NULL};

static remat_status show(const plan_command *command, const remat_profile *profile, const remat_plan *plan)
{
    if (command->output) {
        remat_status status = remat_plan_save(plan, command->output);
        if (status != REMAT_OK)
            return status;
    }
    return command->json ? remat_plan_write(plan, stdout, !command->no_schedule)
                         : plan_text_print(profile, plan, command->all_layers);
}

/* Plans and shows; the exit code. */
static int plan_once(const plan_command *command, const remat_profile *profile)
{
    remat_context *context = command->context;
    remat_plan *plan;
    remat_status status = remat_plan_create(context, profile, &command->options, &plan);
    int code = status == REMAT_OK ? 0 : command_fail(context, status);
    if (plan) {
        status = show(command, profile, plan);
        if (status != REMAT_OK)
            code = command_fail(context, status);
    }
    remat_plan_destroy(plan);
    return code;
}

int command_plan(remat_context *context, int argc, char **argv)
{
    plan_command command = {.context = context};
    remat_plan_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    remat_profile *profile;
    remat_status status = command_read_profile(context, command.file, &profile);
    if (status != REMAT_OK)
        return (int)status;
    int code;
    if (command.compare) {
        status = compare_print(context, profile, &command.options, command.json);
        code = status == REMAT_OK ? 0 : command_fail(context, status);
    } else {
        code = plan_once(&command, profile);
    }
    remat_profile_destroy(profile);
    return code;
}
