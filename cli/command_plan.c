#include "command.h"
#include "compare.h"
#include "graph_plan_text.h"
#include "model_file.h"
#include "model_plan.h"
#include "model_set.h"
#include "output_path.h"
#include "plan_text.h"
#include "plot.h"
#include "shown.h"
#include "waiting.h"

#include <string.h>

enum {
    OPTION_COUNT = 256,
    OPTION_LOSSY,
    OPTION_JSON,
    OPTION_NO_SCHEDULE,
    OPTION_ALL_LAYERS,
    OPTION_METHOD,
    OPTION_THREADS,
    OPTION_COMPARE,
    OPTION_PLOT,
    OPTION_PROFILE,
    OPTION_DEVICE,
    OPTION_PROFILE_OUT,
    OPTION_GRAPH_OUT,
    OPTION_GRAPH_PLAN,
    OPTION_BATCH,
    OPTION_DIM
};

typedef struct plan_command {
    remat_context *context;
    const char *file, *output;
    const char *profile, *profile_output; /* of models, like the next two, the device and the batch */
    const char *device;
    const char *graph_output, *graph_plan_output;
    import_settings import; /* of ONNX files; the batch is also of models */
    remat_plan_options options;
    bool json, no_schedule, all_layers, compare, plot;
} plan_command;

static const struct argp_option options[] = {
    {"strategy", 's', "NAME[:ARG]", 0, "how to decide (see below); default: optimal with a budget, none without", 0},
    {"budget", 'b', "SIZE", 0,
     "the limit for the peak: 512, 64KiB, 8GB, 1.5GiB; for a model: the limit for all memory that training takes", 0},
    {"count", OPTION_COUNT, "WHAT", 0, "with the strategy budget: SIZE limits the 'peak' (default) or the bytes 'kept'",
     0},
    {"allow-lossy", OPTION_LOSSY, NULL, 0, "modes that lose precision may be used", 0},
    {"method", OPTION_METHOD, "NAME", 0, "for optimal: auto (default), exhaustive or intervals", 0},
    {"threads", OPTION_THREADS, "N", 0, "for optimal: use N threads (default: all cores); the plan is the same", 0},
    {"profile", OPTION_PROFILE, "FILE", 0, "for a model: plan with measured costs, from `remat profile`", 0},
    {"device", OPTION_DEVICE, "NAME", 0,
     "for a model: the device that would compute it: cpu (default), or cuda, a GPU, whose kernels need other "
     "workspaces",
     0},
    {"batch", OPTION_BATCH, "N", 0,
     "for a model: samples in a micro-batch (default: the model's); for an ONNX file: the batch size, if the file "
     "leaves it open",
     0},
    {ONNX_ROW_DIM(OPTION_DIM), 0},
    {"compare", OPTION_COMPARE, NULL, 0, "compare all strategies: peak, cost, whether they fit", 1},
    {"json", OPTION_JSON, NULL, 0, "print the plan file instead of a table", 1},
    {"output", 'o', "FILE", 0, "write the plan file to FILE", 1},
    {"profile-out", OPTION_PROFILE_OUT, "FILE", 0,
     "for a model: write its chain of pieces to FILE, the profile that the plan is for", 1},
    {"graph-out", OPTION_GRAPH_OUT, "FILE", 0,
     "for a model or an ONNX file: write the graph of a training step to FILE", 1},
    {"graph-plan", OPTION_GRAPH_PLAN, "FILE", 0,
     "write the plan of that graph to FILE: its schedule, and the place of every tensor", 1},
    {"no-schedule", OPTION_NO_SCHEDULE, NULL, 0, "with --json: print only the figures", 1},
    {"plot", OPTION_PLOT, NULL, 0, "draw memory over time below the table", 1},
    {"all-layers", OPTION_ALL_LAYERS, NULL, 0, "show every layer of a long table", 1},
    {0}};

static void set_count(struct argp_state *state, plan_command *command, const char *text)
{
    if (strcmp(text, "peak") == 0)
        command->options.budget_counts = REMAT_COUNT_PEAK;
    else if (strcmp(text, "kept") == 0)
        command->options.budget_counts = REMAT_COUNT_KEPT;
    else
        argp_error(state, "--count takes 'peak' or 'kept', not '%s'", shown(text));
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
    case OPTION_PLOT: command->plot = true; break;
    case OPTION_PROFILE: command->profile = argument; break;
    case OPTION_DEVICE: command->device = argument; break;
    case OPTION_PROFILE_OUT: command->profile_output = argument; break;
    case OPTION_GRAPH_OUT: command->graph_output = argument; break;
    case OPTION_GRAPH_PLAN: command->graph_plan_output = argument; break;
    case OPTION_BATCH: command->import.batch = command_batch(state, command->context, argument, NULL); break;
    case OPTION_DIM: onnx_file_dimension(state, command->context, argument, &command->import); break;
    case ARGP_KEY_ARG: command_take(state, "FILE", argument, &command->file); break;
    case ARGP_KEY_END:
        if (!command->file)
            argp_error(state, "FILE is missing: a profile, a graph, a model, an ONNX file, or - for standard input");
        if (command->no_schedule && !command->json)
            argp_error(state, "--no-schedule goes with --json: only the plan file has a schedule");
        if (command->plot && (command->json || command->compare))
            argp_error(state, "--plot draws below the table: leave out --json and --compare");
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
    fputs("\nExamples:\n  remat plan profile.json --strategy every-nth:2\n  remat plan profile.json --budget 64MiB -o "
          "plan.json\n  remat plan model.ini --budget 300MiB\n  remat plan graph.json --budget 2GB --json\n",
          to);
    fclose(to);
    return extra;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Decide which layers of FILE, a profile, a graph or a model, to keep and which to recompute. A model is "
           "planned as `remat train` would train it: it is cut into a chain of pieces, and the plan is for this "
           "chain. `remat train --plan` runs the plan. The plan of a graph is a list of its actions. An ONNX file is "
           "planned "
           "as the graph of a training step that is derived from it.\v",
    .help_filter = help_filter,
    .children = model_set_children,
};

static remat_status show(const plan_command *command, const remat_profile *profile, const remat_plan *plan)
{
    if (command->output) {
        remat_status status = remat_plan_save(plan, command->output);
        if (status != REMAT_OK)
            return status;
    }
    if (command->json)
        return remat_plan_write(plan, stdout, !command->no_schedule);
    remat_status status = plan_text_print(profile, plan, command->all_layers);
    return status == REMAT_OK && command->plot && remat_plan_get_figures(plan)->feasible ? plot_memory(profile, plan)
                                                                                         : status;
}

/* Plans and shows; the exit code. */
static int plan_once(const plan_command *command, const remat_profile *profile)
{
    remat_context *context = command->context;
    remat_plan *plan;
    waiting_for("planning");
    remat_status status = remat_plan_create(context, profile, &command->options, &plan);
    waiting_end();
    int code = status == REMAT_OK ? 0 : command_fail(context, status);
    if (plan) {
        status = show(command, profile, plan);
        if (status != REMAT_OK)
            code = command_fail(context, status);
    }
    remat_plan_destroy(plan);
    return code;
}

static int wrong_for(const char *what, const char *options_named)
{
    fprintf(stderr, "remat: FILE is a %s; %s\n", what, options_named);
    return REMAT_INVALID;
}

static int plan_model(const plan_command *command, remat_model *model)
{
    const remat_plan_options *wanted = &command->options;
    if (command->compare || wanted->budget_counts != REMAT_COUNT_PEAK || wanted->allow_lossy || wanted->method)
        return wrong_for("model", "--compare, --count, --allow-lossy and --method are only for profiles");
    model_plan_request request = {.output = command->output,
                                  .profile_output = command->profile_output,
                                  .graph_output = command->graph_output,
                                  .graph_plan_output = command->graph_plan_output,
                                  .json = command->json,
                                  .no_schedule = command->no_schedule,
                                  .all_layers = command->all_layers,
                                  .plot = command->plot};
    remat_train_options_init(&request.options);
    request.options.strategy = wanted->strategy;
    request.options.budget_bytes = wanted->budget_bytes;
    request.options.threads = wanted->threads;
    request.options.profile_path = command->profile;
    request.options.device = command->device;
    remat_status status = model_file_set_batch(model, command->import.batch);
    return status == REMAT_OK ? model_plan_show(command->context, model, &request)
                              : command_fail(command->context, status);
}

static int plan_graph(const plan_command *command, const remat_graph *graph, bool imported)
{
    const remat_plan_options *wanted = &command->options;
    if (command->compare || wanted->budget_counts != REMAT_COUNT_PEAK || wanted->allow_lossy || wanted->method)
        return wrong_for("graph", "--compare, --count, --allow-lossy and --method are only for profiles");
    if (command->profile || command->profile_output || command->device)
        return wrong_for("graph", "--profile, --profile-out and --device are only for models");
    if (!imported && (command->graph_output || command->import.batch))
        return wrong_for("graph", "--graph-out and --batch are only for models and ONNX files");
    graph_plan_request request = {.output = command->output ? command->output : command->graph_plan_output,
                                  .graph_output = command->graph_output,
                                  .json = command->json,
                                  .no_schedule = command->no_schedule,
                                  .all_rows = command->all_layers,
                                  .plot = command->plot};
    remat_graph_plan_options_init(&request.options);
    request.options.strategy = wanted->strategy;
    request.options.budget_bytes = wanted->budget_bytes;
    request.options.threads = wanted->threads;
    return graph_plan_show(command->context, graph, &request);
}

static int plan_profile(const plan_command *command, const remat_profile *profile)
{
    if (command->profile || command->profile_output || command->graph_output || command->graph_plan_output ||
        command->import.batch || command->device)
        return wrong_for(
            "profile", "--profile, --profile-out, --graph-out, --graph-plan, --device and --batch are only for models");
    if (!command->compare)
        return plan_once(command, profile);
    remat_status status = compare_print(command->context, profile, &command->options, command->json);
    return status == REMAT_OK ? 0 : command_fail(command->context, status);
}

/* No output may replace what is read, or another output. `model` may be NULL. */
static remat_status check_outputs(const plan_command *command, const remat_model *model)
{
    const char *const outputs[] = {command->output, command->profile_output, command->graph_output,
                                   command->graph_plan_output};
    const char *const inputs[] = {command->file, command->profile};
    remat_status status = REMAT_OK;
    for (int o = 0; o < 4 && status == REMAT_OK; o++) {
        status = model ? output_path_check_data(command->context, model, outputs[o])
                       : output_path_check_inputs(outputs[o], inputs, 2);
        for (int other = 0; other < o && status == REMAT_OK; other++)
            status = output_path_check_other(outputs[o], outputs[other], "two outputs would be written to it");
    }
    return status;
}

int command_plan(remat_context *context, int argc, char **argv)
{
    plan_command command = {.context = context};
    remat_plan_options_init(&command.options);
    command_parse(&argp, argc, argv, &command);
    planned_file file;
    int code = (int)check_outputs(&command, NULL);
    if (code != REMAT_OK)
        return code;
    code = (int)model_file_read(context, command.file, &command.import, &file);
    if (code == REMAT_OK && file.model)
        code = (int)check_outputs(&command, file.model);
    if (code == REMAT_OK)
        code = file.model   ? plan_model(&command, file.model)
               : file.graph ? plan_graph(&command, file.graph, file.imported)
                            : plan_profile(&command, file.profile);
    planned_file_release(&file);
    return code;
}
