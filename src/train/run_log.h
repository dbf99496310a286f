/* The log of a training as JSON lines: a first line with the plan, one line for each step and each validation, and a
 * last line with what was measured (docs/formats.md). Every line is written to the file before the call returns. So a
 * log can be read while the run goes on, and a killed run leaves all of its steps. */
#ifndef REMAT_TRAIN_RUN_LOG_H
#define REMAT_TRAIN_RUN_LOG_H

#include <remat/train.h>

#include "base/error.h"

/* The first line, field by field: writer, reader and struct follow from these lists. */
/* clang-format off */
#define RUN_LOG_TEXTS(X) \
    X(model)    /* its name */ \
    X(strategy) /* what decides which layers are recomputed */ \
    X(kernels) \
    X(remark)   /* why a setting did nothing */
#define RUN_LOG_COUNTS(X) \
    X(first_step) /* steps taken before this run: not 0 where it was resumed */ \
    X(total_steps) X(steps_per_epoch) \
    X(parameters) /* trained values */ \
    X(batch) X(accumulate) X(threads) X(seed) \
    X(layers) X(recomputed_layers) X(forwards) \
    X(budget_bytes) /* REMAT_NOWHERE: none, and no such key */ \
    X(min_budget_bytes) \
    X(total_bytes) X(weight_bytes) X(optimizer_bytes) X(gradient_bytes) X(scratch_bytes) \
    X(arena_bytes) X(peak_bytes) X(keep_all_arena_bytes)
#define RUN_LOG_REALS(X) \
    X(predicted_step_seconds) X(keep_all_step_seconds) /* NaN: not known */
/* clang-format on */

typedef struct run_log_header {
#define X(name) const char *name; /* NULL: none, and no such key */
    RUN_LOG_TEXTS(X)
#undef X
#define X(name) uint64_t name;
    RUN_LOG_COUNTS(X)
#undef X
#define X(name) double name;
    RUN_LOG_REALS(X)
#undef X
} run_log_header;

/* Sets every field to 0, NULL or NaN, and the budget to none. */
void run_log_header_init(run_log_header *header);

/* ---- writing ---- */

typedef struct run_log run_log;

/* Starts a log at `path` with its first line. `append` keeps the file's contents, except an incomplete last line.
 * REMAT_IO, REMAT_NO_MEMORY. */
remat_status run_log_create(remat_context *context, const char *path, bool append, const run_log_header *header,
                            run_log **log);
/* The same with the header of a trainer. */
remat_status run_log_open(const remat_trainer *trainer, const char *path, bool append, run_log **log);

/* A line each. They allocate nothing. Numbers that are not finite are null or left out. Where writing fails, the log ends
 * with a warning. */
void run_log_step(run_log *log, const remat_step_result *result);
void run_log_validation(run_log *log, uint64_t step, const remat_validation_result *result);

/* The last line, unless `result` is NULL, and the end of the log. NULL log: nothing. */
void run_log_close(run_log *log, const remat_run_result *result);

/* ---- reading ---- */

typedef struct run_validation {
    uint64_t step;
    remat_validation_result result;
} run_validation;

typedef struct run_record {
    remat_context *context;
    run_log_header header; /* of the last run in the file; its first_step is the first run's */
    remat_step_result *steps;
    size_t step_count, step_capacity;
    run_validation *validations;
    size_t validation_count, validation_capacity;
    bool ended; /* the last run wrote its last line, which is `end` */
    remat_run_result end;
} run_record;

/* Reads a log, even of a run that has not ended: an incomplete last line is ignored. The steps of a resumed run replace
 * the later steps of an earlier run. Missing values are 0 or NaN. The caller destroys the record. REMAT_IO,
 * REMAT_BAD_INPUT with the line, REMAT_NO_MEMORY. */
remat_status run_log_read(remat_context *context, const char *path, run_record **record);
void run_record_destroy(run_record *record);

#endif
