#include "data/safetensors_checksum.h"

#include "base/hash.h"
#include "data/safetensors_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PART_BYTES = 1 << 15 };

/* ---- one ---- */

uint64_t checksum_of_bytes(const void *bytes, size_t count)
{
    return XXH3_64bits(bytes, count);
}

static void add_text(XXH3_state_t *state, const char *text)
{
    XXH3_64bits_update(state, text, strlen(text) + 1);
}

uint64_t checksum_of_text(const char *key, const char *value)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    add_text(&state, key);
    add_text(&state, value);
    return XXH3_64bits_digest(&state);
}

uint64_t checksum_of_tensor(const char *name, const char *dtype, const uint64_t *dims, uint32_t rank)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    add_text(&state, name);
    add_text(&state, dtype);
    XXH3_64bits_update(&state, dims, rank * sizeof *dims);
    return XXH3_64bits_digest(&state);
}

void checksum_print(uint64_t checksum, char text[CHECKSUM_DIGITS + 1])
{
    snprintf(text, CHECKSUM_DIGITS + 1, "%016" PRIx64, checksum);
}

/* ---- of a file that is read ---- */

remat_status safetensors_check_header(safetensors *file)
{
    const char *stated = safetensors_metadata(file, CHECKSUM_KEY);
    const char *of_tensors = safetensors_metadata(file, CHECKSUM_TENSORS_KEY);
    if (!stated && !of_tensors)
        return REMAT_OK;
    uint64_t sum = 0;
    char found[CHECKSUM_DIGITS + 1];
    for (size_t i = 0; i < file->text_count; i++)
        if (strcmp(file->texts[i].key, CHECKSUM_KEY) != 0)
            sum += checksum_of_text(file->texts[i].key, file->texts[i].value);
    for (size_t i = 0; i < file->count; i++) {
        const safetensors_tensor *tensor = &file->tensors[i];
        sum += checksum_of_tensor(tensor->name, tensor->dtype, tensor->dims, tensor->rank);
    }
    checksum_print(sum, found);
    remat_place place = data_file_place(&file->source);
    if (!stated || strcmp(stated, found) != 0 || !of_tensors || strlen(of_tensors) != file->count * CHECKSUM_DIGITS)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                          "the file is damaged: its header has the checksum %s, and " CHECKSUM_KEY " is %.40s", found,
                          stated ? stated : "missing");
    for (size_t i = 0; i < file->count; i++)
        file->tensors[file->by_name[i]].checksum = of_tensors + i * CHECKSUM_DIGITS;
    return REMAT_OK;
}

bool safetensors_has_checksums(const safetensors *file)
{
    return safetensors_metadata(file, CHECKSUM_KEY) != NULL;
}

void tensor_reader_begin(tensor_reader *reader, const safetensors *file, const safetensors_tensor *tensor)
{
    reader->file = file;
    reader->tensor = tensor;
    reader->at = file->data_offset + tensor->begin;
    XXH3_64bits_reset(&reader->state);
}

remat_status tensor_reader_next(tensor_reader *reader, void *to, size_t bytes)
{
    REMAT_TRY(data_file_read(&reader->file->source, reader->at, to, bytes));
    if (reader->tensor->checksum)
        XXH3_64bits_update(&reader->state, to, bytes);
    reader->at += bytes;
    return REMAT_OK;
}

remat_status tensor_reader_end(tensor_reader *reader)
{
    const safetensors_tensor *tensor = reader->tensor;
    char found[CHECKSUM_DIGITS + 1];
    if (!tensor->checksum)
        return REMAT_OK;
    checksum_print(XXH3_64bits_digest(&reader->state), found);
    if (memcmp(found, tensor->checksum, CHECKSUM_DIGITS) == 0)
        return REMAT_OK;
    remat_place place = data_file_place(&reader->file->source);
    place.field = tensor->name;
    return remat_fail(reader->file->context, REMAT_BAD_INPUT, &place,
                      "the file is damaged: the values of this tensor have the checksum %s, and the file says %.*s",
                      found, CHECKSUM_DIGITS, tensor->checksum);
}

remat_status safetensors_check(const safetensors *file, const safetensors_tensor *tensor)
{
    if (!tensor->checksum)
        return REMAT_OK;
    char part[PART_BYTES];
    tensor_reader reader;
    tensor_reader_begin(&reader, safetensors_holder(file, tensor), tensor);
    for (uint64_t left = tensor->end - tensor->begin; left > 0;) {
        size_t bytes = left < PART_BYTES ? (size_t)left : PART_BYTES;
        REMAT_TRY(tensor_reader_next(&reader, part, bytes));
        left -= bytes;
    }
    return tensor_reader_end(&reader);
}
