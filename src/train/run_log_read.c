#include "train/run_log.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_fields.h"
#include "base/number_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 1 << 20 };

/* What a line may hold, all kinds of lines together; the keys that are there say which kind it is. */
typedef struct line_values {
    run_log_header header;
    remat_step_result step;
    remat_validation_result validation;
    remat_run_result end;
    bool is_header, is_validation, is_end, has_step;
} line_values;

/* ---- values ---- */

static remat_status wrong(json_reader *reader, const char *key, const char *wanted)
{
    remat_place place = json_field_place(reader, REMAT_NOWHERE, key);
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "it must be %s", wanted);
}

/* Any number of 64 bits: seeds may be that large. */
static remat_status read_count(json_reader *reader, const char *key, uint64_t *value)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    errno = 0;
    *value = token.kind == JSON_INTEGER ? strtoull(token.text, NULL, 10) : 0;
    if (token.kind != JSON_INTEGER || token.text[0] == '-' || errno == ERANGE)
        return wrong(reader, key, "a whole number from 0 to 2^64 - 1");
    return REMAT_OK;
}

/* null stands for a number that was not finite. */
static remat_status read_real(json_reader *reader, const char *key, double *value)
{
    json_token token;
    const char *end;
    REMAT_TRY(json_next(reader, &token));
    *value = NAN;
    if (token.kind == JSON_NULL)
        return REMAT_OK;
    if ((token.kind == JSON_INTEGER || token.kind == JSON_REAL) && number_parse(token.text, &end, value))
        return REMAT_OK;
    return wrong(reader, key, "a number or null");
}

static remat_status read_text(json_reader *reader, const char *key, const char **text)
{
    const char *value = "";
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, key, &value));
    remat_text_release(json_reader_context(reader), *text);
    *text = remat_text_copy(json_reader_context(reader), value);
    return *text ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- lines ---- */

static void line_init(line_values *line)
{
    *line = (line_values){0};
    run_log_header_init(&line->header);
    line->step.loss = line->step.learning_rate = line->step.seconds = line->step.gradient_norm = NAN;
    line->validation.loss = line->validation.accuracy = NAN;
    line->end.last_loss = line->end.median_step_seconds = line->end.best_validation_loss = NAN;
}

static void header_release(remat_context *context, run_log_header *header)
{
#define X(name) remat_text_release(context, header->name);
    RUN_LOG_TEXTS(X)
#undef X
}

static remat_status read_field(json_reader *reader, const char *key, line_values *line)
{
#define FIELD(text, read)       \
    if (strcmp(key, text) == 0) \
    return read
    FIELD("format", (line->is_header = true, json_read_format(reader, "remat-run")));
    FIELD("version", json_read_version(reader, 1));
#define X(name) FIELD(#name, read_text(reader, #name, &line->header.name));
    RUN_LOG_TEXTS(X)
#undef X
#define X(name) FIELD(#name, read_count(reader, #name, &line->header.name));
    RUN_LOG_COUNTS(X)
#undef X
#define X(name) FIELD(#name, read_real(reader, #name, &line->header.name));
    RUN_LOG_REALS(X)
#undef X
    FIELD("step", (line->has_step = true, read_count(reader, "step", &line->step.step)));
    FIELD("epoch", read_count(reader, "epoch", &line->step.epoch));
    FIELD("loss", read_real(reader, "loss", &line->step.loss));
    FIELD("rate", read_real(reader, "rate", &line->step.learning_rate));
    FIELD("seconds", read_real(reader, "seconds", &line->step.seconds));
    FIELD("norm", read_real(reader, "norm", &line->step.gradient_norm));
    FIELD("validation_loss",
          (line->is_validation = true, read_real(reader, "validation_loss", &line->validation.loss)));
    FIELD("accuracy", read_real(reader, "accuracy", &line->validation.accuracy));
    FIELD("samples", read_count(reader, "samples", &line->validation.samples));
    FIELD("end", json_read_bool(reader, REMAT_NOWHERE, "end", &line->is_end));
    FIELD("steps", read_count(reader, "steps", &line->end.steps));
    FIELD("stopped", json_read_bool(reader, REMAT_NOWHERE, "stopped", &line->end.stopped));
    FIELD("stopped_early", json_read_bool(reader, REMAT_NOWHERE, "stopped_early", &line->end.stopped_early));
    FIELD("last_loss", read_real(reader, "last_loss", &line->end.last_loss));
    FIELD("median_step_seconds", read_real(reader, "median_step_seconds", &line->end.median_step_seconds));
    FIELD("mean_step_seconds", read_real(reader, key, &line->end.median_step_seconds)); /* its name in 0.1 */
    FIELD("best_validation_loss", read_real(reader, "best_validation_loss", &line->end.best_validation_loss));
    FIELD("best_step", read_count(reader, "best_step", &line->end.best_step));
    FIELD("peak_resident_bytes", read_count(reader, "peak_resident_bytes", &line->end.peak_resident_bytes));
    FIELD("allocated_bytes", read_count(reader, "allocated_bytes", &line->end.allocated_bytes));
#undef FIELD
    return json_field_unknown(reader, REMAT_NOWHERE, key);
}

static remat_status read_fields(json_reader *reader, line_values *line)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            return json_next(reader, &token);
        REMAT_TRY(read_field(reader, token.text, line));
    }
}

/* ---- the record ---- */

/* A run that goes on from step `first` makes later ones of the run before it void. */
static void take_header(run_record *record, line_values *line)
{
    uint64_t first = line->header.first_step;
    while (record->step_count && record->steps[record->step_count - 1].step > first)
        record->step_count--;
    while (record->validation_count && record->validations[record->validation_count - 1].step > first)
        record->validation_count--;
    if (record->step_count)
        line->header.first_step = record->header.first_step;
    header_release(record->context, &record->header);
    record->header = line->header;
    record->ended = false;
    line_init(line);
}

static remat_status take_line(run_record *record, line_values *line, const remat_place *place)
{
    if (line->is_header) {
        take_header(record, line);
    } else if (line->is_end) {
        record->ended = true;
        record->end = line->end;
    } else if (line->has_step && line->is_validation) {
        REMAT_TRY(remat_grow(record->context, (void **)&record->validations, &record->validation_capacity,
                             record->validation_count + 1, sizeof *record->validations));
        record->validations[record->validation_count++] = (run_validation){line->step.step, line->validation};
    } else if (line->has_step) {
        REMAT_TRY(remat_grow(record->context, (void **)&record->steps, &record->step_capacity, record->step_count + 1,
                             sizeof *record->steps));
        record->steps[record->step_count++] = line->step;
    } else {
        return remat_fail(record->context, REMAT_BAD_INPUT, place,
                          "neither a first line, a step, a validation nor an end");
    }
    return REMAT_OK;
}

static remat_status read_line(run_record *record, const remat_place *place, char *text, size_t length)
{
    FILE *stream = fmemopen(text, length, "r");
    if (!stream)
        return remat_fail(record->context, REMAT_NO_MEMORY, place, "no memory for reading: %s", strerror(errno));
    line_values line;
    line_init(&line);
    json_reader *reader;
    remat_status status = json_reader_create(record->context, stream, place->file, &reader);
    if (status == REMAT_OK) {
        json_reader_set_line(reader, place->line);
        status = read_fields(reader, &line);
    }
    json_reader_destroy(reader);
    fclose(stream);
    if (status == REMAT_OK && place->line == 1 && !line.is_header)
        status = remat_fail(record->context, REMAT_BAD_INPUT, place,
                            "not a run log: the first line must have the format remat-run");
    if (status == REMAT_OK)
        status = take_line(record, &line, place);
    header_release(record->context, &line.header);
    return status;
}

static remat_status read_lines(run_record *record, FILE *stream, const char *path)
{
    char *text = NULL;
    size_t length = 0, capacity = 0;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    place.line = 1;
    remat_status status = REMAT_OK;
    for (int byte = getc(stream); byte != EOF && status == REMAT_OK; byte = getc(stream)) {
        if (byte != '\n') {
            if (length == LONGEST_LINE)
                status = remat_fail(record->context, REMAT_BAD_INPUT, &place, "the line is longer than 1 MiB");
            else if (length == capacity)
                status = remat_grow(record->context, (void **)&text, &capacity, length + 1, 1);
            if (status == REMAT_OK)
                text[length++] = (char)byte;
            continue;
        }
        if (length)
            status = read_line(record, &place, text, length);
        place.line++;
        length = 0;
    }
    if (status == REMAT_OK && ferror(stream))
        status = remat_fail(record->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
    if (status == REMAT_OK && place.line == 1)
        status = remat_fail(record->context, REMAT_BAD_INPUT, &place, "not a run log: it has no whole line");
    remat_release(record->context, text, capacity, 1);
    return status;
}

remat_status run_log_read(remat_context *context, const char *path, run_record **record)
{
    *record = NULL;
    FILE *stream;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = REMAT_NO_MEMORY;
    run_record *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (made) {
        made->context = context;
        run_log_header_init(&made->header);
        status = read_lines(made, stream, path);
    }
    fclose(stream);
    if (status == REMAT_OK)
        *record = made;
    else
        run_record_destroy(made);
    return status;
}

void run_record_destroy(run_record *record)
{
    if (!record)
        return;
    header_release(record->context, &record->header);
    remat_release(record->context, record->steps, record->step_capacity, sizeof *record->steps);
    remat_release(record->context, record->validations, record->validation_capacity, sizeof *record->validations);
    remat_release(record->context, record, 1, sizeof *record);
}
