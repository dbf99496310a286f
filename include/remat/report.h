/* Remat: a page to look at.
 *
 * A report is one HTML page that opens offline: memory over the steps, the arena, the curve of cost over memory, the
 * layers. Two files in one report are set side by side.
 *
 *     remat_report *report;
 *     remat_report_create(ctx, &report);
 *     remat_report_add_plan(report, "plan.json", plan, NULL);
 *     remat_report_save(report, "page.html");
 *     remat_report_destroy(report);
 *
 * The page is fed by one JSON document inside it (docs/formats.md, "Report"); remat_report_write_json prints that
 * document alone. */
#ifndef REMAT_REPORT_H
#define REMAT_REPORT_H

#include <remat/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_report remat_report;

/* An empty report. REMAT_NO_MEMORY. The caller destroys it, before the context; NULL is fine. */
remat_status remat_report_create(remat_context *context, remat_report **report);
void remat_report_destroy(remat_report *report);

/* What is worked out beyond what the files say. */
typedef struct remat_report_options {
    size_t struct_size;
    bool curve;       /* the whole curve of cost over memory, as remat_sweep_create finds it (default: true) */
    bool arena;       /* a place for every tensor in one piece of memory (default: true) */
    bool allow_lossy; /* of the curve (default: false) */
    unsigned threads; /* of the curve; 0 takes all cores */
} remat_report_options;
void remat_report_options_init(remat_report_options *options);

/* Each adds one file, under the name that the page calls it by. Everything is copied: profile and plan may be destroyed
 * at once. `options` NULL: the defaults. A failed call leaves the report as it was.
 * A profile shows what keeping everything comes to, and its curve. */
remat_status remat_report_add_profile(remat_report *report, const char *label, const remat_profile *profile,
                                      const remat_report_options *options);
/* A plan shows its schedule as well; an infeasible one has only its figures. */
remat_status remat_report_add_plan(remat_report *report, const char *label, const remat_plan *plan,
                                   const remat_report_options *options);
/* A plan file whose profile is not at hand: its figures and decisions. REMAT_BAD_INPUT, REMAT_IO. */
remat_status remat_report_add_plan_file(remat_report *report, const char *label, FILE *stream);

/* A model as it is planned for training (options.plan_only is enough): its arena action by action, its layers, its curve. */
remat_status remat_report_add_trainer(remat_report *report, const char *label, remat_trainer *trainer,
                                      const remat_report_options *options);
/* The log of a run, as `remat train --log` writes it: losses, and what was predicted beside what was measured. A run that
 * is not over, or was killed, is shown as far as it went. REMAT_BAD_INPUT, REMAT_IO. */
remat_status remat_report_add_run(remat_report *report, const char *label, const char *path);

/* How many files were added. */
size_t remat_report_count(const remat_report *report);

/* Writes the page, or the document alone. `save` leaves an old page in place unless all went well. */
remat_status remat_report_write(const remat_report *report, FILE *stream);
remat_status remat_report_write_json(const remat_report *report, FILE *stream);
remat_status remat_report_save(const remat_report *report, const char *path);

/* The memory of a plan over time, in at most `count` columns: for each the fullest of its steps, and what is alive while
 * that runs. *used is how many columns there are: as many as steps, where those are fewer. REMAT_INFEASIBLE. */
typedef struct remat_memory_column {
    uint64_t step;
    uint64_t inputs, states, gradients, workspace; /* bytes of the tensors x, s and y, and scratch */
} remat_memory_column;
remat_status remat_plan_memory(const remat_plan *plan, remat_memory_column *columns, size_t count, size_t *used);

/* What a file is, told by its content. */
typedef enum remat_file_kind {
    REMAT_FILE_PROFILE, /* JSON, or CSV that is not lifetimes */
    REMAT_FILE_PLAN,
    REMAT_FILE_MODEL, /* INI */
    REMAT_FILE_RUN,
    REMAT_FILE_LIFETIMES,
    REMAT_FILE_OTHER, /* JSON of another format */
} remat_file_kind;

/* Reads as much of the stream as it needs, which is then somewhere in the file: the caller rewinds it. REMAT_BAD_INPUT
 * where JSON is broken before it says its format, REMAT_IO. */
remat_status remat_file_kind_tell(remat_context *context, FILE *stream, const char *name, remat_file_kind *kind);

#ifdef __cplusplus
}
#endif
#endif
