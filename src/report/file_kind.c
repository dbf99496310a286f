#include <remat/report.h>

#include "base/input.h"
#include "base/json_fields.h"
#include "base/nearest.h"

#include <string.h>

enum { FORMATS = 5, MISTYPED = 2 /* letters at most */ };
static const char *const formats[FORMATS] = {"remat-profile", "remat-plan", "remat-run", "remat-graph",
                                             "remat-graph-plan"};
static const remat_file_kind kinds[FORMATS] = {REMAT_FILE_PROFILE, REMAT_FILE_PLAN, REMAT_FILE_RUN, REMAT_FILE_GRAPH,
                                               REMAT_FILE_GRAPH_PLAN};

/* What the value of `format` says; REMAT_FILE_OTHER: nothing. */
static remat_file_kind tell_format(const char *format)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i], format) == 0)
            return kinds[i];
    return REMAT_FILE_OTHER;
}

/* The value of the key `format` decides, wherever it stands. Without a known one, only a graph has `tensors` and `actions`, and a
 * mistyped one counts as the most similar one: the reader of that format then says what is wrong with it. */
static remat_status tell_json(json_reader *reader, remat_file_kind *kind)
{
    bool has_tensors = false, has_actions = false;
    const char *similar = NULL;
    *kind = REMAT_FILE_OTHER;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        if (strcmp(key.text, "format") != 0) {
            has_tensors |= strcmp(key.text, "tensors") == 0;
            has_actions |= strcmp(key.text, "actions") == 0;
            REMAT_TRY(json_skip(reader));
            continue;
        }
        const char *format = "";
        REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "format", &format));
        *kind = tell_format(format);
        if (*kind != REMAT_FILE_OTHER)
            return REMAT_OK;
        similar = nearest_name(format, formats, FORMATS);
        if (similar && name_distance(similar, format, MISTYPED) > MISTYPED)
            similar = NULL; /* another format */
    }
    if (has_tensors && has_actions)
        *kind = REMAT_FILE_GRAPH;
    else if (similar)
        *kind = tell_format(similar);
    return REMAT_OK;
}

/* The first line of a CSV names its columns: only lifetimes have one called `lower`. */
static remat_file_kind tell_csv(FILE *stream)
{
    char line[4096], *rest;
    if (!fgets(line, sizeof line, stream))
        return REMAT_FILE_PROFILE;
    for (char *cell = strtok_r(line, ",\" \t\r\n", &rest); cell; cell = strtok_r(NULL, ",\" \t\r\n", &rest))
        if (strcmp(cell, "lower") == 0)
            return REMAT_FILE_LIFETIMES;
    return REMAT_FILE_PROFILE;
}

static bool is_blank(int byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

remat_status remat_file_kind_tell(remat_context *context, FILE *stream, const char *name, remat_file_kind *kind)
{
    int byte = getc(stream);
    for (uint64_t skipped = 1; is_blank(byte) || byte == 0xef || byte == 0xbb || byte == 0xbf; skipped++) {
        REMAT_TRY(input_check_length(context, name, skipped)); /* the last three are a byte order mark */
        byte = getc(stream);
    }
    ungetc(byte, stream);
    if (byte == '{') {
        json_reader *reader;
        REMAT_TRY(json_reader_create(context, stream, name, &reader));
        remat_status status = tell_json(reader, kind);
        json_reader_destroy(reader);
        return status;
    }
    /* The first field of a message: the version, the name of the producer, or its version. */
    if (byte == 0x08 || byte == 0x12 || byte == 0x1a) {
        *kind = REMAT_FILE_ONNX;
        return REMAT_OK;
    }
    *kind = byte == '[' || byte == '#' || byte == ';' ? REMAT_FILE_MODEL : tell_csv(stream);
    return REMAT_OK;
}
