#include "data/safetensors_file.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/json_fields.h"

#include <errno.h>
#include <string.h>

enum { MOST_TEXTS = 4096 }; /* of the metadata: they are searched one by one */

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {
    {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"BOOL", 1},    {"U8", 1},      {"I8", 1},  {"U16", 2},
    {"I16", 2}, {"U32", 4}, {"I32", 4},  {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

/* ---- fields of a tensor ---- */

static remat_status fail_at(json_reader *reader, const char *field, const char *name, const char *text)
{
    remat_place place = json_field_place(reader, REMAT_NOWHERE, field);
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "of '%.100s': %s", name, text);
}

static remat_status read_dtype(json_reader *reader, safetensors_tensor *tensor, uint32_t *value_bytes)
{
    const char *text = "";
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "dtype", &text));
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].name) == 0) {
            tensor->dtype = dtypes[i].name;
            *value_bytes = dtypes[i].bytes;
            return REMAT_OK;
        }
    }
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "dtype");
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place,
                      "of '%.100s': the type '%.20s' is unknown; weights are F32, F16, BF16 or F64", tensor->name,
                      text);
}

/* Whole numbers in brackets, at most `most`. */
static remat_status read_counts(json_reader *reader, const char *field, const char *name, uint64_t *values,
                                uint32_t most, uint32_t *count)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, field, JSON_ARRAY));
    for (*count = 0;; (*count)++) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (!token.in_range)
            return fail_at(reader, field, name, "it must hold whole numbers from 0 to 2^63 - 1");
        if (*count == most)
            return fail_at(reader, field, name, most == 2 ? "it must be two numbers" : "more than 8 dimensions");
        values[*count] = token.integer;
    }
}

static remat_status check_extent(json_reader *reader, safetensors_tensor *tensor, uint32_t value_bytes)
{
    uint64_t bytes;
    tensor->values = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!remat_multiply(tensor->values, tensor->dims[i], &tensor->values))
            return fail_at(reader, "shape", tensor->name, "2^63 values or more");
    if (!remat_multiply(tensor->values, value_bytes, &bytes))
        return fail_at(reader, "shape", tensor->name, "2^63 bytes or more");
    if (tensor->end >= tensor->begin && tensor->end - tensor->begin == bytes)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "data_offsets");
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place,
                      "of '%.100s': %llu to %llu; its type and shape need %llu bytes", tensor->name,
                      (unsigned long long)tensor->begin, (unsigned long long)tensor->end, (unsigned long long)bytes);
}

/* Behind a tensor's name. */
static remat_status read_tensor(json_reader *reader, safetensors_tensor *tensor)
{
    uint64_t seen = 0, offsets[2];
    uint32_t value_bytes = 0, offset_count = 0;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, tensor->name, JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (strcmp(token.text, "dtype") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "dtype", 0, &seen));
            REMAT_TRY(read_dtype(reader, tensor, &value_bytes));
        } else if (strcmp(token.text, "shape") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "shape", 1, &seen));
            REMAT_TRY(read_counts(reader, "shape", tensor->name, tensor->dims, SAFETENSORS_MAX_RANK, &tensor->rank));
        } else if (strcmp(token.text, "data_offsets") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "data_offsets", 2, &seen));
            REMAT_TRY(read_counts(reader, "data_offsets", tensor->name, offsets, 2, &offset_count));
            if (offset_count != 2)
                return fail_at(reader, "data_offsets", tensor->name, "it must be two numbers");
        } else {
            return fail_at(reader, NULL, tensor->name, "a tensor has dtype, shape and data_offsets, and nothing else");
        }
    }
    if (seen != 7)
        return fail_at(reader, NULL, tensor->name, "dtype, shape or data_offsets is missing");
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
    return check_extent(reader, tensor, value_bytes);
}

/* ---- the header ---- */

static remat_status add_tensor(safetensors *file, json_reader *reader, const char *name)
{
    REMAT_TRY(
        remat_grow(file->context, (void **)&file->tensors, &file->capacity, file->count + 1, sizeof *file->tensors));
    safetensors_tensor *tensor = &file->tensors[file->count];
    *tensor = (safetensors_tensor){.name = remat_text_copy(file->context, name)};
    if (!tensor->name)
        return REMAT_NO_MEMORY;
    file->count++;
    return read_tensor(reader, tensor);
}

static remat_status add_text(safetensors *file, json_reader *reader, const char *key)
{
    if (safetensors_metadata(file, key)) {
        remat_place place = json_place(reader);
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "__metadata__ has '%.100s' twice", key);
    }
    if (file->text_count == MOST_TEXTS) {
        remat_place place = json_place(reader);
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "__metadata__ has more than %d texts", MOST_TEXTS);
    }
    REMAT_TRY(remat_grow(file->context, (void **)&file->texts, &file->text_capacity, file->text_count + 1,
                         sizeof *file->texts));
    safetensors_text *made = &file->texts[file->text_count];
    *made = (safetensors_text){remat_text_copy(file->context, key), NULL};
    if (!made->key)
        return REMAT_NO_MEMORY;
    file->text_count++;
    const char *value = "";
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, made->key, &value));
    made->value = remat_text_copy(file->context, value);
    return made->value ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status read_metadata(safetensors *file, json_reader *reader)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "__metadata__", JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            return REMAT_OK;
        REMAT_TRY(add_text(file, reader, token.text));
    }
}

static remat_status read_header(safetensors *file, json_reader *reader)
{
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (strcmp(token.text, "__metadata__") == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, "__metadata__", 0, &seen));
            REMAT_TRY(read_metadata(file, reader));
        } else {
            REMAT_TRY(add_tensor(file, reader, token.text));
        }
    }
    json_token end;
    return json_next(reader, &end); /* only blanks may follow */
}

static remat_status read_text(safetensors *file, char *text, size_t length)
{
    remat_place place = data_file_place(&file->source);
    REMAT_TRY(data_file_read(&file->source, 8, text, length));
    if (text[0] != '{')
        return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                          "not a safetensors file: its header does not start with '{'");
    FILE *stream = fmemopen(text, length, "r");
    if (!stream)
        return remat_fail(file->context, REMAT_NO_MEMORY, &place, "no memory for reading: %s", strerror(errno));
    json_reader *reader;
    remat_status status = json_reader_create(file->context, stream, file->source.path, &reader);
    if (status == REMAT_OK)
        status = read_header(file, reader);
    json_reader_destroy(reader);
    fclose(stream);
    return status;
}

/* 8 letters, digits and blanks are no length of a header. */
static bool is_text(uint64_t length)
{
    for (int i = 0; i < 8; i++, length >>= 8)
        if ((length & 0xff) != '\n' && (length & 0xff) != '\r' && ((length & 0xff) < ' ' || (length & 0xff) > '~'))
            return false;
    return true;
}

remat_status safetensors_read_header(safetensors *file)
{
    remat_place place = data_file_place(&file->source);
    uint64_t length = 0;
    if (file->source.bytes < 8)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "not a safetensors file: %llu bytes are too few",
                          (unsigned long long)file->source.bytes);
    REMAT_TRY(data_file_read(&file->source, 0, &length, 8));
    if (is_text(length))
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "this is a text, not a weights file");
    if (length < 2 || length > SAFETENSORS_MAX_HEADER || length > file->source.bytes - 8)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                          "not a safetensors file, or damaged: a header of %llu bytes in a file of %llu",
                          (unsigned long long)length, (unsigned long long)file->source.bytes);
    file->data_offset = 8 + length;
    char *text = remat_alloc(file->context, length, 1);
    if (!text)
        return REMAT_NO_MEMORY;
    remat_status status = read_text(file, text, length);
    remat_release(file->context, text, length, 1);
    return status;
}
