#include "command.h"
#include "model_file.h"
#include "graph_sweep_text.h"
#include "model_set.h"
#include "model_sweep.h"
#include "plot.h"
#include "shown.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPTION_JSON = 256,
    OPTION_CSV,
    OPTION_METHOD,
    OPTION_LOSSY,
    OPTION_THREADS,
    OPTION_ALL,
    OPTION_PLOT,
    OPTION_PROFILE,
    OPTION_DEVICE,
    OPTION_BATCH,
    OPTION_DIM
};

typedef struct sweep_command {
    remat_context *context;
    const char *file;
    const char *profile; /* of models, like the device and the batch */
    const char *device;
    import_settings import; /* of ONNX files; the batch is also of models */
    remat_plan_options options;
    bool json, csv, all, plot;
} sweep_command;

static const struct argp_option options[] = {
    {"json", OPTION_JSON, NULL, 0, "print all points as JSON", 0},
    {"csv", OPTION_CSV, NULL, 0, "print all points as CSV", 0},
    {"all", OPTION_ALL, NULL, 0, "show every point of a long curve in the table", 0},
    {"plot", OPTION_PLOT, NULL, 0, "draw the curve below the table", 0},
    {"allow-lossy", OPTION_LOSSY, NULL, 0, "modes that lose precision may be used", 1},
    {"method", OPTION_METHOD, "NAME", 0, "auto (default), exhaustive or intervals", 1},
    {"threads", OPTION_THREADS, "N", 0, "use N threads (default: all cores); the curve is the same", 1},
    {"profile", OPTION_PROFILE, "FILE", 0, "for a model: measured costs, from `remat profile`", 2},
    {"device", OPTION_DEVICE, "NAME", 0,
     "for a model: the device that would compute it: cpu (default), or cuda, a GPU, whose kernels need other "
     "workspaces",
     2},
    {"batch", OPTION_BATCH, "N", 0,
     "for a model: samples in a micro-batch (default: the model's); for an ONNX file: the batch size, if the file "
     "leaves it open",
     2},
    {ONNX_ROW_DIM(OPTION_DIM), 2},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    sweep_command *command = state->input;
    switch (key) {
    case OPTION_JSON: command->json = true; break;
    case OPTION_CSV: command->csv = true; break;
    case OPTION_ALL: command->all = true; break;
    case OPTION_PLOT: command->plot = true; break;
    case OPTION_PROFILE: command->profile = argument; break;
    case OPTION_DEVICE: command->device = argument; break;
    case OPTION_BATCH: command->import.batch = command_batch(state, command->context, argument, NULL); break;
    case OPTION_DIM: onnx_file_dimension(state, command->context, argument, &command->import); break;
    case OPTION_LOSSY: command->options.allow_lossy = true; break;
    case OPTION_METHOD: command->options.method = argument; break;
    case OPTION_THREADS: command->options.threads = command_threads(state, command->context, argument); break;
    case ARGP_KEY_ARG: command_take(state, "FILE", argument, &command->file); break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state, "FILE is missing: a profile, a graph, a model, an ONNX file, or - for standard input");
        if (command->json && command->csv)
            argp_error(state, "--json and --csv exclude each other");
        if (command->plot && (command->json || command->csv))
            argp_error(state, "--plot draws below the table: leave out --json and --csv");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Show the whole curve of cost over memory of FILE, a profile, a graph or a model. Each point is a plan: a "
           "cost and the smallest peak (for a model: total memory) that allows it. 'remat plan FILE --budget PEAK' "
           "makes the plan.\v"
           "Examples:\n"
           "  remat sweep profile.json\n"
           "  remat sweep profile.json --csv > curve.csv\n"
           "  remat sweep model.ini --profile costs.json",
    .children = model_set_children,
};

typedef struct figures {
    uint64_t base_cost, base_peak;
} figures;

static double overhead(const figures *base, remat_sweep_point point)
{
    return base->base_cost ? 100.0 * ((double)point.total_cost - (double)base->base_cost) / (double)base->base_cost
                           : 0.0;
}

static remat_sweep_point point_at(const remat_sweep *sweep, size_t position)
{
    remat_sweep_point point = {0};
    remat_sweep_get_point(sweep, position, &point);
    return point;
}

static void print_table(const remat_profile *profile, const remat_sweep *sweep, const figures *base, bool all)
{
    size_t count = remat_sweep_count(sweep), knee = remat_sweep_knee(sweep), rows = 0;
    const char *name = remat_profile_name(profile), *unit = remat_profile_cost_unit(profile);
    size_t layers = remat_profile_layer_count(profile);
    printf("%s, %zu layer%s, %zu plan%s, method %s\n\n", *name ? shown(name) : "profile", layers,
           layers == 1 ? "" : "s", count, count == 1 ? "" : "s", remat_sweep_method(sweep));
    printf("%20s %11s %9s  %20s %9s\n", "peak bytes", "", "of all", *unit ? shown(unit) : "cost", "more");
    for (size_t i = 0; i < count; i++) {
        if (!all && !sweep_row_is_shown(i, count, knee))
            continue;
        remat_sweep_point point = point_at(sweep, i);
        char bytes[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT];
        printf("%20s %11s %8.1f%%  %20s %8.2f%%%s\n", remat_count_print(point.peak_bytes, bytes),
               remat_size_print(point.peak_bytes, size),
               base->base_peak ? 100.0 * (double)point.peak_bytes / (double)base->base_peak : 100.0,
               remat_count_print(point.total_cost, cost), overhead(base, point), i == knee ? "  knee" : "");
        rows++;
    }
    if (rows < count)
        sweep_rest_print(count - rows);
}

static void print_json(const remat_sweep *sweep, const figures *base)
{
    size_t count = remat_sweep_count(sweep);
    printf("{\"format\": \"remat-sweep\", \"version\": 1, \"method\": \"%s\", \"base_cost\": %llu, "
           "\"base_peak_bytes\": %llu, \"knee\": %zu,\n \"points\": [",
           remat_sweep_method(sweep), (unsigned long long)base->base_cost, (unsigned long long)base->base_peak,
           remat_sweep_knee(sweep));
    for (size_t i = 0; i < count; i++) {
        remat_sweep_point point = point_at(sweep, i);
        printf("%s\n  {\"peak_bytes\": %llu, \"total_cost\": %llu}", i ? "," : "", (unsigned long long)point.peak_bytes,
               (unsigned long long)point.total_cost);
    }
    printf("]}\n");
}

static void print_csv(const remat_sweep *sweep, const figures *base)
{
    size_t knee = remat_sweep_knee(sweep);
    printf("peak_bytes,total_cost,overhead_percent,knee\n");
    for (size_t i = 0; i < remat_sweep_count(sweep); i++) {
        remat_sweep_point point = point_at(sweep, i);
        printf("%llu,%llu,%.4f,%d\n", (unsigned long long)point.peak_bytes, (unsigned long long)point.total_cost,
               overhead(base, point), i == knee);
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

static remat_status draw(const remat_sweep *sweep, uint64_t base_cost)
{
    size_t count = remat_sweep_count(sweep);
    remat_sweep_point *points = malloc(count * sizeof *points);
    if (!points)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        points[i] = point_at(sweep, i);
    plot_curve(points, count, remat_sweep_knee(sweep), base_cost);
    free(points);
    return REMAT_OK;
}

static int sweep_profile(const sweep_command *command, const remat_profile *profile)
{
    remat_context *context = command->context;
    figures base = {0};
    remat_sweep *sweep = NULL;
    remat_status status = find_base(context, profile, &base);
    waiting_for("planning the whole curve");
    if (status == REMAT_OK)
        status = remat_sweep_create(context, profile, &command->options, &sweep);
    waiting_end();
    if (status == REMAT_OK) {
        if (command->json)
            print_json(sweep, &base);
        else if (command->csv)
            print_csv(sweep, &base);
        else
            print_table(profile, sweep, &base, command->all);
        if (command->plot)
            status = draw(sweep, base.base_cost);
    }
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_sweep_destroy(sweep);
    return (int)status;
}

static sweep_format format_of(const sweep_command *command)
{
    return command->json ? SWEEP_JSON : command->csv ? SWEEP_CSV : SWEEP_TABLE;
}

static int sweep_model(const sweep_command *command, remat_model *model)
{
    remat_train_options training;
    remat_train_options_init(&training);
    training.profile_path = command->profile;
    training.device = command->device;
    training.batch_size = command->import.batch;
    training.threads = command->options.threads;
    return model_sweep_show(command->context, model, &training, format_of(command),
                            (sweep_extent){command->all, command->plot});
}

int command_sweep(remat_context *context, int argc, char **argv)
{
    sweep_command command = {.context = context};
    remat_plan_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    planned_file file;
    remat_status status = model_file_read(context, command.file, &command.import, &file);
    int code = status == REMAT_OK ? REMAT_INVALID : (int)status;
    const char *what = file.model ? "model" : file.graph ? "graph" : "profile";
    if (status == REMAT_OK && !file.profile && (command.options.method || command.options.allow_lossy))
        fprintf(stderr, "remat: FILE is a %s; --method and --allow-lossy are only for profiles\n", what);
    else if (status == REMAT_OK && !file.model &&
             (command.profile || command.device || (command.import.batch && !file.imported)))
        fprintf(stderr, "remat: FILE is a %s; --profile, --device and --batch are only for models\n", what);
    else if (status == REMAT_OK)
        code = file.model   ? sweep_model(&command, file.model)
               : file.graph ? graph_sweep_show(context, file.graph, command.options.threads, format_of(&command),
                                               (sweep_extent){command.all, command.plot})
                            : sweep_profile(&command, file.profile);
    planned_file_release(&file);
    return code;
}
