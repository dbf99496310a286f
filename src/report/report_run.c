/* A run as a file of the report: what was predicted beside what was measured, what memory is made of, and the loss. */
#include "report/report_document.h"
#include "train/run_log.h"

#include <math.h>

static void write_figures(report_document *to, const run_record *record)
{
    const run_log_header *header = &record->header;
    document_open(to, "figures", '{');
    if (header->budget_bytes != REMAT_NOWHERE)
        document_number(to, "budget_bytes", header->budget_bytes);
    document_number(to, "min_budget_bytes", header->min_budget_bytes);
    document_number(to, "total_bytes", header->total_bytes);
    document_number(to, "keep_all_bytes", header->total_bytes - header->arena_bytes + header->keep_all_arena_bytes);
    document_number(to, "arena_bytes", header->arena_bytes);
    if (header->peak_bytes > 0)
        document_number(to, "peak_bytes", header->peak_bytes);
    if (record->ended && isfinite(record->end.median_step_seconds))
        document_real(to, "step_ns", 1e9 * record->end.median_step_seconds);
    document_number(to, "layers", header->layers);
    document_number(to, "recomputed_layers", header->recomputed_layers);
    document_number(to, "parameters", header->parameters);
    document_number(to, "batch", header->batch);
    document_number(to, "first_step", header->first_step);
    document_number(to, "total_steps", header->total_steps);
    document_close(to, '}');
}

static void write_holds(report_document *to, const run_log_header *header)
{
    const report_hold rows[] = {{"weights", header->weight_bytes},
                                {"gradients of the weights over several micro-batches", header->gradient_bytes},
                                {"optimizer", header->optimizer_bytes},
                                {"activations and all gradients of a step: the arena", header->arena_bytes},
                                {"scratch of the kernels", header->scratch_bytes}};
    report_write_holds(to, rows, sizeof rows / sizeof rows[0]);
}

/* `scale` turns the figure into the unit; what is not known is null. */
static void write_measured_row(report_document *to, const char *what, const char *unit, double predicted,
                               double measured, double scale)
{
    document_open(to, NULL, '{');
    document_text(to, "what", what);
    document_text(to, "unit", unit);
    document_real(to, "predicted", predicted * scale);
    document_real(to, "measured", measured * scale);
    document_close(to, '}');
}

static void write_measured_bytes(report_document *to, const char *what, uint64_t predicted, uint64_t measured)
{
    document_open(to, NULL, '{');
    document_text(to, "what", what);
    document_text(to, "unit", "bytes");
    if (predicted > 0)
        document_number(to, "predicted", predicted);
    document_number(to, "measured", measured);
    document_close(to, '}');
}

static void write_measured(report_document *to, const run_record *record)
{
    const run_log_header *header = &record->header;
    document_open(to, "measured", '{');
    document_open(to, "rows", '[');
    if (record->ended) {
        write_measured_bytes(to, "bytes for tensors", header->total_bytes, record->end.allocated_bytes);
        write_measured_bytes(to, "most of the whole process, as the system counts it", 0,
                             record->end.peak_resident_bytes);
        write_measured_row(to, "time of a step", "ns", header->predicted_step_seconds, record->end.median_step_seconds,
                           1e9);
    }
    document_close(to, ']');
    document_close(to, '}');
}

typedef enum run_series { TRAINING_LOSS, VALIDATION_LOSS, VALIDATION_ACCURACY } run_series;

static size_t series_count(const run_record *record, run_series which)
{
    return which == TRAINING_LOSS ? record->step_count : record->validation_count;
}

static double series_value(const run_record *record, run_series which, size_t i)
{
    switch (which) {
    case TRAINING_LOSS: return record->steps[i].loss;
    case VALIDATION_LOSS: return record->validations[i].result.loss;
    case VALIDATION_ACCURACY: break;
    }
    return record->validations[i].result.accuracy;
}

static void write_series(report_document *to, const run_record *record, run_series which)
{
    size_t count = series_count(record, which);
    if (count == 0)
        return;
    document_open(to, NULL, '{');
    document_text(to, "name", which == TRAINING_LOSS ? "training" : "validation");
    DOCUMENT_COLUMN(to, "step", count, document_number,
                    which == TRAINING_LOSS ? record->steps[i].step : record->validations[i].step);
    DOCUMENT_COLUMN(to, "value", count, document_real, series_value(record, which, i));
    document_close(to, '}');
}

static void write_loss(report_document *to, const run_record *record)
{
    document_open(to, "loss", '{');
    document_open(to, "series", '[');
    write_series(to, record, TRAINING_LOSS);
    write_series(to, record, VALIDATION_LOSS);
    document_close(to, ']');
    document_close(to, '}');
}

/* Only classifiers have an accuracy. */
static void write_accuracy(report_document *to, const run_record *record)
{
    bool any = false;
    for (size_t i = 0; i < record->validation_count; i++)
        any |= isfinite(record->validations[i].result.accuracy) != 0;
    if (!any)
        return;
    document_open(to, "accuracy", '{');
    document_open(to, "series", '[');
    write_series(to, record, VALIDATION_ACCURACY);
    document_close(to, ']');
    document_close(to, '}');
}

remat_status remat_report_add_run(remat_report *report, const char *label, const char *path)
{
    run_record *record;
    REMAT_TRY(run_log_read(report_context(report), path, &record));
    const run_log_header *header = &record->header;
    report_document *to = report_begin_file(report, "run", label, header->model ? header->model : "");
    document_text(to, "cost_unit", "ns");
    if (header->strategy)
        document_text(to, "strategy", header->strategy);
    if (header->remark)
        document_text(to, "remark", header->remark);
    document_bool(to, "ended", record->ended);
    write_figures(to, record);
    write_measured(to, record);
    write_holds(to, header);
    write_loss(to, record);
    write_accuracy(to, record);
    remat_status status = report_end_file(report);
    run_record_destroy(record);
    return status;
}
