/* Remat: HTML reports.
 *
 * A report is one HTML page that needs no network. It shows memory over the steps, the arena, the curve of cost over
 * memory, the layers, and the losses of a run. Files that are added to the same report are shown side by side.
 *
 *     remat_report *report;
 *     remat_report_create(ctx, &report);
 *     remat_report_add_plan(report, "plan.json", plan, NULL);
 *     remat_report_save(report, "page.html");
 *     remat_report_destroy(report);
 *
 * The data of the page is one JSON document inside it (docs/formats.md, "Report"). remat_report_write_json writes this
 * document alone. */
#ifndef REMAT_REPORT_H
#define REMAT_REPORT_H

#include <remat/graph_plans.h>
#include <remat/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_report remat_report;

/* Makes an empty report. REMAT_NO_MEMORY. */
remat_status remat_report_create(remat_context *context, remat_report **report);
void remat_report_destroy(remat_report *report);

/* What is computed for the page in addition to the contents of the files. */
typedef struct remat_report_options {
    size_t struct_size;
    bool curve;       /* the whole curve of cost over memory, as remat_sweep_create finds it. Default true */
    bool arena;       /* an offset for every tensor in one arena. Default true */
    bool allow_lossy; /* the curve may use lossy modes. Default false */
    unsigned threads; /* for the curve; 0 (the default): all cores */
} remat_report_options;
void remat_report_options_init_sized(remat_report_options *options, size_t size);
static inline void remat_report_options_init(remat_report_options *options)
{
    remat_report_options_init_sized(options, sizeof *options);
}

/* Each of the following calls adds one file; `label` is its name on the page. Everything is copied, so the objects may
 * be destroyed afterwards. `options` NULL: the defaults. After a failure the report is as before. All of them may
 * return REMAT_NO_MEMORY. */

/* A profile: the memory with everything kept, and the curve. */
remat_status remat_report_add_profile(remat_report *report, const char *label, const remat_profile *profile,
                                      const remat_report_options *options);
/* A plan: the same, and its schedule. For a plan that is not feasible, only its figures. */
remat_status remat_report_add_plan(remat_report *report, const char *label, const remat_plan *plan,
                                   const remat_report_options *options);
/* A plan file without its profile: its figures and decisions. REMAT_BAD_INPUT, REMAT_IO. */
remat_status remat_report_add_plan_file(remat_report *report, const char *label, FILE *stream);
/* A trainer: the arena action by action, the layers and the curve. The option plan_only is enough. */
remat_status remat_report_add_trainer(remat_report *report, const char *label, remat_trainer *trainer,
                                      const remat_report_options *options);
/* The plan of a graph: the graph itself, the memory position by position, the arena, the actions and the curve. For a plan
 * that is not feasible, only the graph, the figures and the curve. The graph is the one that the plan was made for. */
remat_status remat_report_add_graph_plan(remat_report *report, const char *label, const remat_graph_plan *plan,
                                         const remat_report_options *options);
/* The log of a run (log_path of remat_run_hooks): its losses, and predicted figures beside measured ones. The log of an
 * unfinished run is shown up to its last complete line. REMAT_BAD_INPUT, REMAT_IO. */
remat_status remat_report_add_run(remat_report *report, const char *label, const char *path);

/* How many files were added. */
size_t remat_report_count(const remat_report *report);

/* Writes the page, or its JSON document alone. `save` replaces the file only when everything was written. REMAT_IO. */
remat_status remat_report_write(const remat_report *report, FILE *stream);
remat_status remat_report_save(const remat_report *report, const char *path);
remat_status remat_report_write_json(const remat_report *report, FILE *stream);
remat_status remat_report_save_json(const remat_report *report, const char *path);

/* ---- parts of a report ---- */

/* The memory of a plan over time, in at most `count` columns. A column stands for a part of the schedule and shows the
 * step in it that needs the most memory. *used is the number of columns; it is smaller than `count` if there are fewer
 * steps. REMAT_INFEASIBLE: the plan has no schedule. REMAT_NO_MEMORY. */
typedef struct remat_memory_column {
    uint64_t step;
    uint64_t inputs;    /* bytes of the tensors x: inputs and outputs of layers */
    uint64_t states;    /* bytes of the tensors s: saved states */
    uint64_t gradients; /* bytes of the tensors y: gradients of x */
    uint64_t workspace;
} remat_memory_column;
remat_status remat_plan_memory_sized(const remat_plan *plan, remat_memory_column *columns, size_t column_size,
                                     size_t count, size_t *used);
static inline remat_status remat_plan_memory(const remat_plan *plan, remat_memory_column *columns, size_t count,
                                             size_t *used)
{
    return remat_plan_memory_sized(plan, columns, sizeof *columns, count, used);
}

/* What a file is. */
typedef enum remat_file_kind {
    REMAT_FILE_PROFILE, /* JSON, or CSV that has no lifetimes */
    REMAT_FILE_PLAN,
    REMAT_FILE_MODEL, /* INI */
    REMAT_FILE_RUN,   /* the log of a training */
    REMAT_FILE_LIFETIMES,
    REMAT_FILE_OTHER, /* JSON of another format */
    REMAT_FILE_GRAPH, /* also JSON with tensors and actions whose format is missing or misspelt */
    REMAT_FILE_GRAPH_PLAN,
    REMAT_FILE_ONNX, /* by its first byte: text does not begin with it */
} remat_file_kind;

/* Finds out what a file is by reading the start of the stream. Rewind the stream afterwards. `name` stands for it in
 * messages. REMAT_BAD_INPUT: the JSON has a syntax error before its key `format`. REMAT_IO. */
remat_status remat_file_kind_tell(remat_context *context, FILE *stream, const char *name, remat_file_kind *kind);

#ifdef __cplusplus
}
#endif
#endif
