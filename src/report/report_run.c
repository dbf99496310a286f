/* A run as a file of the report: what was predicted beside what was measured, what memory is made of, and its curves. */
#include "report/report_document.h"
#include "train/run_log.h"

#include <math.h>
#include <string.h>

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

/* The curves of a run. A section of the document has those of the same key, which follow each other here. */
typedef enum run_series { LOSS, VALIDATION_LOSS, ACCURACY, RATE, NORM, THROUGHPUT, SERIES_COUNT } run_series;
static const struct {
    const char *key;
    bool validation; /* a value for each validation, not for each step */
} series[SERIES_COUNT] = {
    [LOSS] = {"loss", false}, [VALIDATION_LOSS] = {"loss", true}, [ACCURACY] = {"accuracy", true},
    [RATE] = {"rate", false}, [NORM] = {"norm", false},           [THROUGHPUT] = {"throughput", false},
};

static size_t series_length(const run_record *record, run_series which)
{
    return series[which].validation ? record->validation_count : record->step_count;
}

static double series_value(const run_record *record, run_series which, size_t i)
{
    const uint64_t samples = record->header.batch * (record->header.accumulate ? record->header.accumulate : 1);
    switch (which) {
    case LOSS: return record->steps[i].loss;
    case VALIDATION_LOSS: return record->validations[i].result.loss;
    case ACCURACY: return record->validations[i].result.accuracy;
    case RATE: return record->steps[i].learning_rate;
    case NORM: return record->steps[i].gradient_norm;
    case THROUGHPUT: return samples ? (double)samples / record->steps[i].seconds : NAN;
    case SERIES_COUNT: break;
    }
    return NAN;
}

/* Whether the log has any value: only classifiers have an accuracy, and older logs have no norm. */
static bool series_is_known(const run_record *record, run_series which)
{
    for (size_t i = 0; i < series_length(record, which); i++)
        if (isfinite(series_value(record, which, i)))
            return true;
    return false;
}

static void write_series(report_document *to, const run_record *record, run_series which)
{
    const size_t count = series_length(record, which);
    document_open(to, NULL, '{');
    document_text(to, "name", series[which].validation ? "validation" : "training");
    DOCUMENT_COLUMN(to, "step", count, document_number,
                    series[which].validation ? record->validations[i].step : record->steps[i].step);
    DOCUMENT_COLUMN(to, "value", count, document_real, series_value(record, which, i));
    document_close(to, '}');
}

static void write_curves(report_document *to, const run_record *record)
{
    const char *key = NULL; /* of the section that is open */
    for (run_series which = 0; which < SERIES_COUNT; which++) {
        if (!series_is_known(record, which))
            continue;
        if (!key || strcmp(key, series[which].key) != 0) {
            if (key) {
                document_close(to, ']');
                document_close(to, '}');
            }
            key = series[which].key;
            document_open(to, key, '{');
            document_open(to, "series", '[');
        }
        write_series(to, record, which);
    }
    if (key) {
        document_close(to, ']');
        document_close(to, '}');
    }
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
    write_curves(to, record);
    remat_status status = report_end_file(report);
    run_record_destroy(record);
    return status;
}
