#include "command.h"

#include <string.h>

enum { OPTION_JSON = 256, OPTION_CSV, OPTION_METHOD, OPTION_LOSSY, OPTION_THREADS, OPTION_ALL, ROWS_SHOWN = 24 };

typedef struct sweep_command {
    remat_context *context;
    const char *file;
    remat_plan_options options;
    bool json, csv, all;
} sweep_command;

static const struct argp_option options[] = {
    {"json", OPTION_JSON, NULL, 0, "print all points as JSON", 0},
    {"csv", OPTION_CSV, NULL, 0, "print all points as CSV", 0},
    {"all", OPTION_ALL, NULL, 0, "show every point of a long curve in the table", 0},
    {"allow-lossy", OPTION_LOSSY, NULL, 0, "modes that lose precision may be used", 1},
    {"method", OPTION_METHOD, "NAME", 0, "auto (default), exhaustive or intervals", 1},
    {"threads", OPTION_THREADS, "N", 0, "use N threads (default: all cores); the curve is the same", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    sweep_command *command = state->input;
    switch (key) {
    case OPTION_JSON: command->json = true; break;
    case OPTION_CSV: command->csv = true; break;
    case OPTION_ALL: command->all = true; break;
    case OPTION_LOSSY: command->options.allow_lossy = true; break;
    case OPTION_METHOD: command->options.method = argument; break;
    case OPTION_THREADS: command->options.threads = command_threads(state, command->context, argument); break;
    case ARGP_KEY_ARG:
        if (command->file)
            argp_error(state, "one FILE is enough; '%s' is a second", argument);
        command->file = argument;
        break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state, "FILE is missing: a profile, or - for standard input");
        if (command->json && command->csv)
            argp_error(state, "--json and --csv exclude each other");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options,
                                 parse,
                                 "FILE",
                                 "Show the whole curve of cost over memory of FILE, a profile: for each point the "
                                 "smallest peak at which that cost can "
                                 "be had. Each point is a plan: 'remat plan FILE --budget PEAK' makes it.\v"
                                 "Example:\n  remat sweep profile.json\n  remat sweep profile.json --csv > curve.csv",
                                 NULL,
                                 NULL,
                                 NULL};

typedef struct figures {
    uint64_t base_cost, base_peak;
} figures;

static double overhead(const figures *base, remat_sweep_point point)
{
    return base->base_cost ? 100.0 * ((double)point.total_cost - (double)base->base_cost) / (double)base->base_cost
                           : 0.0;
}

/* Rows of the table: both ends, the knee, and what lies evenly between. */
static bool shown(size_t i, size_t count, size_t knee, bool all)
{
    if (all || count <= ROWS_SHOWN || i == 0 || i == knee || i + 1 == count)
        return true;
    return i * (ROWS_SHOWN - 1) / (count - 1) != (i + 1) * (ROWS_SHOWN - 1) / (count - 1);
}

static void print_table(const remat_profile *profile, const remat_sweep *sweep, const figures *base, bool all)
{
    size_t count = remat_sweep_count(sweep), knee = remat_sweep_knee(sweep), rows = 0;
    const char *name = remat_profile_name(profile), *unit = remat_profile_cost_unit(profile);
    printf("%s, %zu layers, %zu plans, method %s\n\n", *name ? name : "profile", remat_profile_layer_count(profile),
           count, remat_sweep_method(sweep));
    printf("%20s %11s %9s  %20s %9s\n", "peak bytes", "", "of all", *unit ? unit : "cost", "more");
    for (size_t i = 0; i < count; i++) {
        if (!shown(i, count, knee, all))
            continue;
        remat_sweep_point point = remat_sweep_get(sweep, i);
        char bytes[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT];
        printf("%20s %11s %8.1f%%  %20s %8.2f%%%s\n", remat_count_print(point.peak_bytes, bytes),
               remat_size_print(point.peak_bytes, size),
               base->base_peak ? 100.0 * (double)point.peak_bytes / (double)base->base_peak : 100.0,
               remat_count_print(point.total_cost, cost), overhead(base, point), i == knee ? "  knee" : "");
        rows++;
    }
    if (rows < count)
        printf("\n%zu more plans lie between these; --all shows them\n", count - rows);
}

static void print_json(const remat_sweep *sweep, const figures *base)
{
    size_t count = remat_sweep_count(sweep);
    printf("{\"format\": \"remat-sweep\", \"version\": 1, \"method\": \"%s\", \"base_cost\": %llu, "
           "\"base_peak_bytes\": %llu, \"knee\": %zu,\n \"points\": [",
           remat_sweep_method(sweep), (unsigned long long)base->base_cost, (unsigned long long)base->base_peak,
           remat_sweep_knee(sweep));
    for (size_t i = 0; i < count; i++) {
        remat_sweep_point point = remat_sweep_get(sweep, i);
        printf("%s\n  {\"peak_bytes\": %llu, \"total_cost\": %llu}", i ? "," : "", (unsigned long long)point.peak_bytes,
               (unsigned long long)point.total_cost);
    }
    printf("]}\n");
}

static void print_csv(const remat_sweep *sweep, const figures *base)
{
    printf("peak_bytes,total_cost,overhead_percent,knee\n");
    for (size_t i = 0; i < remat_sweep_count(sweep); i++) {
        remat_sweep_point point = remat_sweep_get(sweep, i);
        printf("%llu,%llu,%.4f,%d\n", (unsigned long long)point.peak_bytes, (unsigned long long)point.total_cost,
               overhead(base, point), i == remat_sweep_knee(sweep));
    }
}

/* Cost and peak with everything kept, which the curve is compared with. */
static remat_status find_base(remat_context *context, const remat_profile *profile, figures *base)
{
    remat_plan_options keep_all;
    remat_plan *plan;
    remat_plan_options_init(&keep_all);
    remat_status status = remat_plan_create(context, profile, &keep_all, &plan);
    if (status != REMAT_OK)
        return status;
    base->base_cost = remat_plan_get_figures(plan)->base_cost;
    base->base_peak = remat_plan_get_figures(plan)->base_peak_bytes;
    remat_plan_destroy(plan);
    return REMAT_OK;
}

int command_sweep(remat_context *context, int argc, char **argv)
{
    sweep_command command = {.context = context};
    remat_plan_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    remat_profile *profile;
    remat_status status = command_read_profile(context, command.file, &profile);
    if (status != REMAT_OK)
        return (int)status;
    figures base;
    remat_sweep *sweep = NULL;
    status = find_base(context, profile, &base);
    if (status == REMAT_OK)
        status = remat_sweep_create(context, profile, &command.options, &sweep);
    if (status != REMAT_OK)
        command_fail(context, status);
    else if (command.json)
        print_json(sweep, &base);
    else if (command.csv)
        print_csv(sweep, &base);
    else
        print_table(profile, sweep, &base, command.all);
    remat_sweep_destroy(sweep);
    remat_profile_destroy(profile);
    return (int)status;
}
