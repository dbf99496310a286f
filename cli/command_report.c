#include "command.h"
#include "file_bytes.h"
#include "graph_file.h"
#include "model_file.h"
#include "model_set.h"
#include "onnx_file.h"
#include "output_path.h"
#include "terminal.h"
#include "shown.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#include <remat/report.h>

enum {
    OPTION_JSON = 256,
    OPTION_NO_CURVE,
    OPTION_NO_ARENA,
    OPTION_LOSSY,
    OPTION_THREADS,
    OPTION_BATCH,
    OPTION_DEVICE,
    FILES_MOST = 8
};

/* A file of the command line, whole in memory: what it is has to be known before it is read, and it may be a pipe. */
typedef struct report_file {
    const char *path;  /* as it was given */
    const char *label; /* in the page: without folders, unless two files would have the same */
    file_bytes content;
    remat_file_kind kind;
    bool is_folder; /* a model in Hugging Face's layout: `content` has no more than its name */
} report_file;

typedef struct report_command {
    remat_context *context;
    const char *paths[FILES_MOST], *profile, *output;
    size_t path_count;
    remat_report_options options;
    remat_train_options training; /* of models */
    bool json;
} report_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write the page to FILE (default: standard output, unless that is a terminal)", 0},
    {"profile", 'p', "FILE", 0,
     "the profile or graph that the plans are for (default: the first among the FILEs); for models: measured costs", 0},
    {"budget", 'b', "SIZE", 0, "for models: the limit for all memory that training takes; for graphs: for the peak", 0},
    {"strategy", 's', "NAME[:ARG]", 0, "for models and graphs: how to decide, as in `remat plan`", 0},
    {"batch", OPTION_BATCH, "N", 0,
     "for models: samples in a micro-batch (default: the model's); for ONNX files: the batch size", 0},
    {"device", OPTION_DEVICE, "NAME", 0,
     "for models: the device that would compute them: cpu (default), or cuda, a GPU", 0},
    {"no-curve", OPTION_NO_CURVE, NULL, 0, "leave out the curve of cost over memory, which takes time for long chains",
     1},
    {"no-arena", OPTION_NO_ARENA, NULL, 0, "leave out the map of the arena", 1},
    {"allow-lossy", OPTION_LOSSY, NULL, 0, "for the curve: modes that lose precision may be used", 1},
    {"threads", OPTION_THREADS, "N", 0, "use N threads for the curve, and plan a model for N (default: all cores)", 1},
    {"json", OPTION_JSON, NULL, 0, "write the page's data as JSON instead of the page", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    report_command *command = state->input;
    switch (key) {
    case 'o': command->output = argument; break;
    case 'p': command->profile = argument; break;
    case 'b': command->training.budget_bytes = command_size(state, command->context, argument); break;
    case 's': command->training.strategy = argument; break;
    case OPTION_BATCH: command->training.batch_size = command_batch(state, command->context, argument, NULL); break;
    case OPTION_DEVICE: command->training.device = argument; break;
    case OPTION_NO_CURVE: command->options.curve = false; break;
    case OPTION_NO_ARENA: command->options.arena = false; break;
    case OPTION_LOSSY: command->options.allow_lossy = true; break;
    case OPTION_THREADS: command->options.threads = command_threads(state, command->context, argument); break;
    case OPTION_JSON: command->json = true; break;
    case ARGP_KEY_ARG:
        if (command->path_count == FILES_MOST)
            argp_error(state, "a page takes %d FILEs at most; '%s' is one more", FILES_MOST, shown(argument));
        command->paths[command->path_count++] = argument;
        break;
    case ARGP_KEY_END:
        if (command->path_count == 0)
            argp_error(
                state,
                "FILE is missing: a profile, a graph, a plan, a model or the log of a run, or - for standard input");
        if (!command->output && !command->json && terminal_is_output())
            argp_error(state, "-o FILE is missing: an HTML page cannot be read in a terminal");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE [FILE...]",
    .doc = "Make one HTML page from profiles, graphs, plans, models and run logs. It opens in any browser without a "
           "network and shows memory over time, the arena, the curve of cost over memory, the layers, and the loss, "
           "rate, norm and throughput of runs. Several FILEs are shown side by side, and runs in the same charts.\v"
           "Examples:\n"
           "  remat plan profile.json --budget 64MiB -o plan.json\n"
           "  remat report plan.json --profile profile.json -o page.html\n"
           "  remat report profile.json plan.json -o both.html\n"
           "  remat report model.ini --budget 300MiB -o model.html\n"
           "  remat report graph.json --budget 2GB -o graph.html\n"
           "  remat report run.log -o run.html\n"
           "  remat report first.log second.log -o runs.html",
    .children = model_set_children,
};

/* ---- reading ---- */

static remat_status tell_kind(remat_context *context, report_file *file)
{
    remat_status status = file_bytes_tell(context, &file->content, &file->kind);
    if (status != REMAT_OK)
        command_fail(context, status);
    else if (file->kind == REMAT_FILE_RUN && strcmp(file->path, "-") == 0) {
        fprintf(stderr, "remat: the log of a run is read from a file, not from standard input\n");
        status = REMAT_INVALID;
    }
    return status;
}

static remat_status read_profile(remat_context *context, const report_file *file, remat_profile **profile)
{
    FILE *stream = file_bytes_open(&file->content);
    if (!stream)
        return REMAT_NO_MEMORY;
    remat_status status = remat_profile_read(context, stream, file->content.name, profile);
    fclose(stream);
    return status;
}

/* ---- adding ---- */

static remat_status add_plan(const report_command *command, const report_file *file, const remat_profile *profile,
                             bool curve, remat_report *report)
{
    remat_report_options wanted = command->options;
    wanted.curve &= curve;
    FILE *stream = file_bytes_open(&file->content);
    if (!stream)
        return REMAT_NO_MEMORY;
    remat_plan *plan = NULL;
    remat_status status;
    if (profile) {
        status = remat_plan_read(command->context, stream, file->content.name, profile, &plan);
        if (status == REMAT_OK)
            status = remat_report_add_plan(report, file->label, plan, &wanted);
        remat_plan_destroy(plan);
    } else {
        status = remat_report_add_plan_file(report, file->label, stream);
    }
    fclose(stream);
    return status;
}

static remat_status add_model(const report_command *command, const report_file *file, remat_report *report)
{
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options wanted = command->training;
    wanted.plan_only = true;
    wanted.profile_path = command->profile;
    wanted.threads = command->options.threads;
    FILE *stream = file->is_folder ? NULL : file_bytes_open(&file->content);
    remat_status status = file->is_folder ? model_set_load(command->context, file->path, &model)
                          : stream        ? model_set_read(command->context, stream, file->content.name, &model)
                                          : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    if (status == REMAT_OK && command->output)
        status = remat_model_check_output(model, command->output);
    if (status == REMAT_OK)
        status = remat_trainer_create(model, &wanted, &trainer);
    if (status == REMAT_OK)
        status = remat_report_add_trainer(report, file->label, trainer, &command->options);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

/* ---- graphs ---- */

static remat_status read_graph(const report_command *command, const file_bytes *file, remat_file_kind kind,
                               remat_graph **graph)
{
    const import_settings settings = {.batch = command->training.batch_size};
    return kind == REMAT_FILE_ONNX ? onnx_file_import(command->context, file, &settings, graph)
                                   : graph_file_read(command->context, file, graph);
}

/* The graph that plans are for: the one that was named, or the first among the files. Says what is wrong. */
static remat_status find_graph(const report_command *command, const report_file *files, const report_file *plan,
                               remat_graph **graph)
{
    if (command->profile)
        return graph_file_load(command->context, command->profile, graph);
    for (size_t i = 0; i < command->path_count; i++)
        if (files[i].kind == REMAT_FILE_GRAPH || files[i].kind == REMAT_FILE_ONNX)
            return read_graph(command, &files[i].content, files[i].kind, graph);
    fprintf(stderr, "remat: %s: this is the plan of a graph; --profile GRAPH names the graph\n",
            shown(plan->content.name));
    return REMAT_INVALID;
}

static remat_status make_graph_plan(const report_command *command, const report_file *file, const remat_graph *graph,
                                    remat_graph_plan **plan)
{
    remat_graph_plan_options wanted;
    if (file->kind == REMAT_FILE_GRAPH_PLAN) {
        FILE *stream = file_bytes_open(&file->content);
        remat_status status = stream ? remat_graph_plan_read(graph, stream, file->content.name, plan) : REMAT_NO_MEMORY;
        if (stream)
            fclose(stream);
        return status;
    }
    remat_graph_plan_options_init(&wanted);
    wanted.budget_bytes = command->training.budget_bytes;
    wanted.strategy = command->training.strategy;
    wanted.threads = command->options.threads;
    return remat_graph_plan_create(graph, &wanted, plan);
}

/* A graph, or a plan of one. Says what is wrong. */
static remat_status add_graph(const report_command *command, const report_file *files, const report_file *file,
                              remat_report *report)
{
    remat_graph *graph = NULL;
    remat_graph_plan *plan = NULL;
    remat_status status = file->kind == REMAT_FILE_GRAPH_PLAN ? find_graph(command, files, file, &graph)
                                                              : read_graph(command, &file->content, file->kind, &graph);
    if (status == REMAT_OK) {
        status = make_graph_plan(command, file, graph, &plan);
        if (status == REMAT_OK)
            status = remat_report_add_graph_plan(report, file->label, plan, &command->options);
        if (status != REMAT_OK)
            command_fail(command->context, status);
    }
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
    return status;
}

/* `curve`: no file before this one shows the curve of the plans' profile, which is the same for all of them. */
static remat_status add_file(const report_command *command, const report_file *file, const remat_profile *profile,
                             bool curve, remat_report *report)
{
    remat_profile *own = NULL;
    remat_status status;
    switch (file->kind) {
    case REMAT_FILE_PLAN: return add_plan(command, file, profile, curve, report);
    case REMAT_FILE_PROFILE:
        status = read_profile(command->context, file, &own);
        if (status == REMAT_OK)
            status = remat_report_add_profile(report, file->label, own, &command->options);
        remat_profile_destroy(own);
        return status;
    case REMAT_FILE_MODEL: return add_model(command, file, report);
    case REMAT_FILE_RUN: return remat_report_add_run(report, file->label, file->path);
    default: break;
    }
    fprintf(stderr, "remat: %s: not a profile, a graph, a plan, a model or the log of a run\n",
            shown(file->content.name));
    return REMAT_BAD_INPUT;
}

static bool is_graph(remat_file_kind kind)
{
    return kind == REMAT_FILE_GRAPH || kind == REMAT_FILE_GRAPH_PLAN || kind == REMAT_FILE_ONNX;
}

static bool is_known(remat_file_kind kind)
{
    return kind <= REMAT_FILE_RUN;
}

/* The profile that plans are read with: the one that was named, or the first among the files. */
static remat_status find_profile(const report_command *command, const report_file *files, remat_profile **profile)
{
    bool plans = false;
    for (size_t i = 0; i < command->path_count; i++)
        plans |= files[i].kind == REMAT_FILE_PLAN;
    if (!plans)
        return REMAT_OK;
    if (command->profile)
        return command_read_profile(command->context, command->profile, profile);
    for (size_t i = 0; i < command->path_count; i++)
        if (files[i].kind == REMAT_FILE_PROFILE) {
            remat_status status = read_profile(command->context, &files[i], profile);
            if (status != REMAT_OK)
                command_fail(command->context, status);
            return status;
        }
    return REMAT_OK;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void set_labels(const report_command *command, report_file *files)
{
    for (size_t i = 0; i < command->path_count; i++) {
        files[i].label = last_part(files[i].content.name);
        for (size_t j = 0; j < command->path_count; j++)
            if (j != i && strcmp(files[i].label, last_part(files[j].content.name)) == 0)
                files[i].label = files[i].content.name;
    }
}

static remat_status add_files(const report_command *command, report_file *files, remat_report *report)
{
    for (size_t i = 0; i < command->path_count; i++) {
        files[i].path = command->paths[i];
        files[i].is_folder = model_file_is_folder(files[i].path);
        if (files[i].is_folder) {
            files[i].content.name = files[i].path;
            files[i].kind = REMAT_FILE_MODEL;
            continue;
        }
        remat_status status = file_bytes_read(command->context, files[i].path, &files[i].content);
        if (status == REMAT_OK)
            status = tell_kind(command->context, &files[i]);
        if (status != REMAT_OK)
            return status;
    }
    set_labels(command, files);
    remat_profile *profile = NULL;
    remat_status status = find_profile(command, files, &profile);
    bool curve = true;
    for (size_t i = 0; i < command->path_count; i++)
        curve &= command->profile || files[i].kind != REMAT_FILE_PROFILE;
    waiting_for("computing the curve and the arena (--no-curve and --no-arena leave them out)");
    for (size_t i = 0; status == REMAT_OK && i < command->path_count; i++) {
        size_t before = remat_report_count(report);
        status = is_graph(files[i].kind) ? add_graph(command, files, &files[i], report)
                                         : add_file(command, &files[i], profile, curve, report);
        curve &= files[i].kind != REMAT_FILE_PLAN;
        if (status != REMAT_OK && remat_report_count(report) == before && is_known(files[i].kind))
            command_fail(command->context, status);
    }
    waiting_end();
    remat_profile_destroy(profile);
    return status;
}

static remat_status write_report(const report_command *command, const remat_report *report)
{
    if (!command->output)
        return command->json ? remat_report_write_json(report, stdout) : remat_report_write(report, stdout);
    return command->json ? remat_report_save_json(report, command->output) : remat_report_save(report, command->output);
}

int command_report(remat_context *context, int argc, char **argv)
{
    report_command command = {.context = context};
    remat_report_options_init(&command.options);
    remat_train_options_init(&command.training);
    command_parse(&argp, argc, argv, &command);
    report_file files[FILES_MOST] = {{0}};
    remat_report *report;
    remat_status status = output_path_check_inputs(command.output, command.paths, command.path_count);
    if (status == REMAT_OK)
        status = output_path_check_inputs(command.output, &command.profile, 1);
    if (status != REMAT_OK)
        return (int)status;
    status = remat_report_create(context, &report);
    if (status != REMAT_OK)
        return command_fail(context, status);
    status = add_files(&command, files, report);
    if (status == REMAT_OK) {
        status = write_report(&command, report);
        if (status != REMAT_OK)
            command_fail(context, status);
        else
            output_path_say(command.output);
    }
    for (size_t i = 0; i < command.path_count; i++)
        file_bytes_free(&files[i].content);
    remat_report_destroy(report);
    return (int)status;
}
