#include "train/run_log.h"

#include "base/alloc.h"
#include "base/number_text.h"
#include "base/output.h"
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_log {
    remat_context *context;
    char *path;
    FILE *stream;
    bool failed;
    output out;
};

void run_log_header_init(run_log_header *header)
{
    *header = (run_log_header){.budget_bytes = REMAT_NOWHERE};
#define X(name) header->name = NAN;
    RUN_LOG_REALS(X)
#undef X
}

/* ---- fields ---- */

static void put_real(output *out, const char *before, const char *key, double value)
{
    char text[NUMBER_TEXT];
    number_print(value, text);
    output_text(out, before);
    output_quoted(out, key);
    output_text(out, ": ");
    output_text(out, text);
}

static void put_known_real(output *out, const char *key, double value)
{
    if (isfinite(value))
        put_real(out, ", ", key, value);
}

static void put_text(output *out, const char *key, const char *text)
{
    if (text && *text)
        output_text_field(out, ", ", key, text);
}

static void put_count(output *out, const char *key, uint64_t count)
{
    if (count != REMAT_NOWHERE)
        output_field(out, ", ", key, count);
}

/* Hands the line on at once. A training goes on without a log that cannot be written: the first failure is a warning, and
 * nothing is written after it. */
static void end_line(run_log *log)
{
    if (log->failed)
        return;
    output_text(&log->out, "}\n");
    if (output_end(&log->out) == REMAT_OK)
        return;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = log->path;
    log->failed = true;
    remat_warn(log->context, &place, "writing failed: %s; the training goes on without a log", strerror(errno));
}

/* ---- lines ---- */

static void put_header(run_log *log, const run_log_header *header)
{
    output *out = &log->out;
    output_text(out, "{\"format\": \"remat-run\", \"version\": 1");
#define X(name) put_text(out, #name, header->name);
    RUN_LOG_TEXTS(X)
#undef X
#define X(name) put_count(out, #name, header->name);
    RUN_LOG_COUNTS(X)
#undef X
#define X(name) put_known_real(out, #name, header->name);
    RUN_LOG_REALS(X)
#undef X
    end_line(log);
}

void run_log_step(run_log *log, const remat_step_result *result)
{
    output_field(&log->out, "{", "step", result->step);
    output_field(&log->out, ", ", "epoch", result->epoch);
    put_real(&log->out, ", ", "loss", result->loss);
    put_known_real(&log->out, "rate", result->learning_rate);
    put_known_real(&log->out, "seconds", result->seconds);
    put_known_real(&log->out, "norm", result->gradient_norm);
    end_line(log);
}

void run_log_validation(run_log *log, uint64_t step, const remat_validation_result *result)
{
    output_field(&log->out, "{", "step", step);
    put_real(&log->out, ", ", "validation_loss", result->loss);
    put_known_real(&log->out, "accuracy", result->accuracy);
    output_field(&log->out, ", ", "samples", result->samples);
    end_line(log);
}

static void put_end(run_log *log, const remat_run_result *result)
{
    output *out = &log->out;
    output_text(out, "{\"end\": true");
    output_field(out, ", ", "steps", result->steps);
    output_text(out, result->stopped ? ", \"stopped\": true" : ", \"stopped\": false");
    output_text(out, result->stopped_early ? ", \"stopped_early\": true" : ", \"stopped_early\": false");
    put_known_real(out, "last_loss", result->last_loss);
    put_known_real(out, "median_step_seconds", result->median_step_seconds);
    put_known_real(out, "best_validation_loss", result->best_validation_loss);
    if (result->best_step)
        output_field(out, ", ", "best_step", result->best_step);
    output_field(out, ", ", "peak_resident_bytes", result->peak_resident_bytes);
    output_field(out, ", ", "allocated_bytes", result->allocated_bytes);
    end_line(log);
}

/* ---- opening and closing ---- */

/* A run that was killed may have left half a line: what is behind the last end of line goes. False with errno. */
static bool cut_half_line(int descriptor)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return false;
    char part[4096];
    off_t end = info.st_size;
    while (end > 0) {
        size_t count = end < (off_t)sizeof part ? (size_t)end : sizeof part;
        if (pread(descriptor, part, count, end - (off_t)count) != (ssize_t)count)
            return false;
        const char *found = memrchr(part, '\n', count);
        if (found) {
            end -= (off_t)count - (found - part) - 1;
            break;
        }
        end -= (off_t)count;
    }
    return end == info.st_size || ftruncate(descriptor, end) == 0;
}

static remat_status open_stream(run_log *log, bool append)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = log->path;
    struct stat info;
    bool readable = append && stat(log->path, &info) == 0 && S_ISREG(info.st_mode);
    int descriptor =
        output_open(log->path, O_CREAT | O_APPEND | (append ? 0 : O_TRUNC) | (readable ? O_RDWR : O_WRONLY));
    if (descriptor >= 0 && (!readable || cut_half_line(descriptor)))
        log->stream = fdopen(descriptor, "a");
    if (log->stream)
        return REMAT_OK;
    remat_status status = remat_fail(log->context, REMAT_IO, &place, "cannot be opened: %s",
                                     errno == ENXIO ? "nobody reads this pipe" : strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

remat_status run_log_create(remat_context *context, const char *path, bool append, const run_log_header *header,
                            run_log **log)
{
    *log = NULL;
    run_log *made = remat_alloc(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->stream = NULL;
    made->failed = false;
    made->path = remat_text_copy(context, path);
    remat_status status = made->path ? open_stream(made, append) : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        output_begin(&made->out, context, made->stream);
        put_header(made, header);
        *log = made;
    } else {
        run_log_close(made, NULL);
    }
    return status;
}

void run_log_close(run_log *log, const remat_run_result *result)
{
    if (!log)
        return;
    if (result)
        put_end(log, result);
    if (log->stream)
        fclose(log->stream); /* every line was flushed */
    remat_text_release(log->context, log->path);
    remat_release(log->context, log, 1, sizeof *log);
}
