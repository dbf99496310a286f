/* A data encoding as text:
 *
 *     {"split_seed": 3, "classes": ["no", "yes"], "targets": ["ill"],
 *      "columns": [{"name": "age", "shift": 41.5, "scale": 12.25, "fill": 41.5}, ...]}
 *
 * A column of words has "words": ["a", "b"]. Every key may be missing; fill may be null. */
#include "data/data_encoding.h"

#include "base/alloc.h"
#include "base/json_fields.h"
#include "base/number_text.h"
#include "base/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

/* Room for the text, generously: a letter may become six. */
static size_t names_room(const name_list *list)
{
    size_t room = 32;
    for (size_t n = 0; n < list->count; n++)
        room += 6 * strlen(list->names[n]) + 8;
    return room;
}

static size_t text_room(const data_encoding *encoding)
{
    size_t room = 256 + names_room(&encoding->classes) + names_room(&encoding->targets);
    for (size_t i = 0; i < encoding->column_count; i++)
        room += names_room(&encoding->columns[i].words) +
                6 * (encoding->columns[i].name ? strlen(encoding->columns[i].name) : 0) + 3 * NUMBER_TEXT + 64;
    return room;
}

static void write_names(output *out, const char *key, const name_list *list, bool *first)
{
    if (!list->count)
        return;
    output_text(out, *first ? "\"" : ", \"");
    output_text(out, key);
    output_text(out, "\": [");
    for (size_t i = 0; i < list->count; i++) {
        output_text(out, i ? ", " : "");
        output_quoted(out, list->names[i]);
    }
    output_text(out, "]");
    *first = false;
}

static void write_number(output *out, const char *key, double value)
{
    char text[NUMBER_TEXT];
    number_print(value, text);
    output_text(out, key);
    output_text(out, text);
}

static void write_columns(output *out, const data_encoding *encoding, bool first)
{
    if (!encoding->column_count)
        return;
    output_text(out, first ? "\"columns\": [" : ", \"columns\": [");
    for (size_t i = 0; i < encoding->column_count; i++) {
        const column_encoding *column = &encoding->columns[i];
        output_text(out, i ? ", {" : "{");
        if (column->name)
            output_text_field(out, "", "name", column->name);
        write_number(out, column->name ? ", \"shift\": " : "\"shift\": ", column->shift);
        write_number(out, ", \"scale\": ", column->scale);
        write_number(out, ", \"fill\": ", column->fill);
        bool first_key = false;
        write_names(out, "words", &column->words, &first_key);
        output_text(out, "}");
    }
    output_text(out, "]");
}

static remat_status write_to(const data_encoding *encoding, FILE *stream)
{
    output *out = remat_alloc(encoding->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    bool first = true;
    output_begin(out, encoding->context, stream);
    output_text(out, "{");
    if (encoding->has_split_seed) {
        output_field(out, "", "split_seed", encoding->split_seed);
        first = false;
    }
    write_names(out, "classes", &encoding->classes, &first);
    write_names(out, "targets", &encoding->targets, &first);
    write_columns(out, encoding, first);
    output_text(out, "}");
    remat_status status = output_end(out);
    remat_release(encoding->context, out, 1, sizeof *out);
    return status;
}

remat_status data_encoding_write(const data_encoding *encoding, char **text)
{
    size_t room = text_room(encoding);
    *text = NULL;
    char *made = remat_alloc_zeroed(encoding->context, room, 1);
    if (!made)
        return REMAT_NO_MEMORY;
    FILE *stream = fmemopen(made, room - 1, "w");
    remat_status status =
        stream ? write_to(encoding, stream)
               : remat_fail(encoding->context, REMAT_NO_MEMORY, NULL, "no memory for a text: %s", strerror(errno));
    if (stream)
        fclose(stream);
    if (status == REMAT_OK && !(*text = remat_text_copy(encoding->context, made)))
        status = REMAT_NO_MEMORY;
    remat_release(encoding->context, made, room, 1);
    return status;
}

/* ---- reading ---- */

static remat_status wrong(json_reader *reader, const char *key, const char *wanted)
{
    remat_place place = json_field_place(reader, REMAT_NOWHERE, key);
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "it must be %s", wanted);
}

static remat_status read_real(json_reader *reader, const char *key, double *value)
{
    json_token token;
    const char *end;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind == JSON_NULL && strcmp(key, "fill") == 0)
        return REMAT_OK;
    if ((token.kind == JSON_INTEGER || token.kind == JSON_REAL) && number_parse(token.text, &end, value))
        return REMAT_OK;
    return wrong(reader, key, "a number");
}

/* Any number of 64 bits: seeds may be that large. */
static remat_status read_seed(json_reader *reader, data_encoding *encoding)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    errno = 0;
    encoding->split_seed = token.kind == JSON_INTEGER ? strtoull(token.text, NULL, 10) : 0;
    if (token.kind != JSON_INTEGER || token.text[0] == '-' || errno == ERANGE)
        return wrong(reader, "split_seed", "a whole number from 0 to 2^64 - 1");
    encoding->has_split_seed = true;
    return REMAT_OK;
}

static remat_status read_names(json_reader *reader, const char *key, name_list *list)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, key, JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_STRING)
            return wrong(reader, key, "a list of texts");
        REMAT_TRY(name_list_add(json_reader_context(reader), list, token.text));
    }
}

static remat_status read_column(json_reader *reader, data_encoding *encoding)
{
    REMAT_TRY(data_encoding_add_column(encoding, NULL));
    column_encoding *column = &encoding->columns[encoding->column_count - 1];
    uint64_t seen = 0;
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (strcmp(token.text, "name") == 0) {
            const char *name = "";
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "name", 0, &seen));
            REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "name", &name));
            if (!(column->name = remat_text_copy(encoding->context, name)))
                return REMAT_NO_MEMORY;
        } else if (strcmp(token.text, "shift") == 0) {
            REMAT_TRY(read_real(reader, "shift", &column->shift));
        } else if (strcmp(token.text, "scale") == 0) {
            REMAT_TRY(read_real(reader, "scale", &column->scale));
        } else if (strcmp(token.text, "fill") == 0) {
            REMAT_TRY(read_real(reader, "fill", &column->fill));
        } else if (strcmp(token.text, "words") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "words", 1, &seen));
            REMAT_TRY(read_names(reader, "words", &column->words));
        } else {
            REMAT_TRY(json_skip(reader));
        }
    }
    return column->scale != 0 ? REMAT_OK : wrong(reader, "scale", "a number other than 0");
}

static remat_status read_columns(json_reader *reader, data_encoding *encoding)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "columns", JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_OBJECT)
            return wrong(reader, "columns", "a list of objects");
        REMAT_TRY(read_column(reader, encoding));
    }
}

static remat_status read_all(json_reader *reader, data_encoding *encoding)
{
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            return json_next(reader, &token); /* only blanks may follow */
        if (strcmp(token.text, "split_seed") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "split_seed", 0, &seen));
            REMAT_TRY(read_seed(reader, encoding));
        } else if (strcmp(token.text, "classes") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "classes", 1, &seen));
            REMAT_TRY(read_names(reader, "classes", &encoding->classes));
        } else if (strcmp(token.text, "targets") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "targets", 2, &seen));
            REMAT_TRY(read_names(reader, "targets", &encoding->targets));
        } else if (strcmp(token.text, "columns") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "columns", 3, &seen));
            REMAT_TRY(read_columns(reader, encoding));
        } else {
            REMAT_TRY(json_skip(reader)); /* of a later release */
        }
    }
}

remat_status data_encoding_read(data_encoding *encoding, const char *text, const char *name)
{
    remat_context *context = encoding->context;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = name;
    place.field = "dataset";
    if (!*text)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "the text is empty");
    FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (!stream)
        return remat_fail(context, REMAT_NO_MEMORY, &place, "no memory for reading: %s", strerror(errno));
    json_reader *reader;
    remat_status status = json_reader_create(context, stream, name, &reader);
    if (status == REMAT_OK)
        status = read_all(reader, encoding);
    json_reader_destroy(reader);
    fclose(stream);
    return status;
}
