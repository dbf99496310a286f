#include "data/safetensors.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/output.h"
#include "base/output_file.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "data/safetensors_checksum.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");

typedef struct weights {
    remat_context *context;
    const char *path;
    const safetensors_entry *entries;
    size_t count;
    const safetensors_source *source;
    uint32_t *by_name;       /* entries in the order of their names */
    safetensors_text *texts; /* the metadata, and two with checksums */
    size_t text_count;
    char *tensor_checksums, checksum[CHECKSUM_DIGITS + 1];
    char *header; /* with its length in front */
    size_t header_bytes, header_room;
} weights;

/* Bytes of an entry; false where they pass 2^63. */
static bool entry_bytes(const safetensors_entry *entry, uint64_t *bytes)
{
    uint64_t values = 1;
    for (uint32_t i = 0; i < entry->rank; i++)
        if (!remat_multiply(values, entry->dims[i], &values))
            return false;
    return dtype_bytes_checked(entry->dtype, values, bytes);
}

/* ---- checks ---- */

static bool name_before(const void *user, uint32_t a, uint32_t b)
{
    const safetensors_entry *entries = user;
    return strcmp(entries[a].name, entries[b].name) < 0;
}

static remat_status check_unique(weights *w)
{
    REMAT_TRY(remat_order(w->context, w->count, name_before, w->entries, &w->by_name));
    for (size_t i = 1; i < w->count; i++)
        if (strcmp(w->entries[w->by_name[i - 1]].name, w->entries[w->by_name[i]].name) == 0)
            return remat_fail(w->context, REMAT_INVALID, NULL, "two tensors are called '%.100s'",
                              w->entries[w->by_name[i]].name);
    return REMAT_OK;
}

static remat_status check_entries(weights *w)
{
    uint64_t total = 0, bytes;
    if (w->count > SAFETENSORS_MAX_ENTRIES)
        return remat_fail(w->context, REMAT_INVALID, NULL, "%zu tensors; a file can have at most %d", w->count,
                          SAFETENSORS_MAX_ENTRIES);
    for (size_t i = 0; i < w->count; i++) {
        const safetensors_entry *entry = &w->entries[i];
        if (strcmp(entry->name, "__metadata__") == 0 || !remat_utf8_valid(entry->name))
            return remat_fail(w->context, REMAT_INVALID, NULL, "a tensor cannot be called '%.100s'", entry->name);
        if (entry->rank > SAFETENSORS_MAX_RANK)
            return remat_fail(w->context, REMAT_INVALID, NULL, "'%.100s' has %u dimensions; at most %d can be written",
                              entry->name, entry->rank, SAFETENSORS_MAX_RANK);
        if (!entry_bytes(entry, &bytes) || !remat_add(&total, bytes))
            return remat_fail(w->context, REMAT_INVALID, NULL, "'%.100s' makes the file larger than 2^63 bytes",
                              entry->name);
    }
    return check_unique(w);
}

/* ---- values ---- */

/* `data` is NULL where there are no bytes. */
static remat_status open_values(const weights *w, size_t entry, const void **data, uint64_t *bytes)
{
    entry_bytes(&w->entries[entry], bytes);
    *data = w->entries[entry].data;
    return *bytes == 0 || *data ? REMAT_OK : w->source->open(w->source->user, entry, data);
}

static void close_values(const weights *w, size_t entry, uint64_t bytes)
{
    if (bytes > 0 && !w->entries[entry].data && w->source->close)
        w->source->close(w->source->user);
}

/* ---- checksums ---- */

static remat_status make_tensor_checksums(weights *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const void *data;
        uint64_t bytes = 0;
        REMAT_TRY(open_values(w, w->by_name[i], &data, &bytes));
        uint64_t checksum = checksum_of_bytes(data, bytes);
        close_values(w, w->by_name[i], bytes);
        checksum_print(checksum, w->tensor_checksums + i * CHECKSUM_DIGITS);
    }
    w->tensor_checksums[w->count * CHECKSUM_DIGITS] = '\0';
    return REMAT_OK;
}

static remat_status make_checksums(weights *w, const safetensors_text *metadata, size_t metadata_count)
{
    w->tensor_checksums = remat_alloc(w->context, w->count + 1, CHECKSUM_DIGITS);
    w->texts = remat_alloc(w->context, metadata_count + 2, sizeof *w->texts);
    if (!w->tensor_checksums || !w->texts)
        return REMAT_NO_MEMORY;
    REMAT_TRY(make_tensor_checksums(w));
    uint64_t sum = 0;
    for (size_t i = 0; i < w->count; i++) {
        const safetensors_entry *entry = &w->entries[i];
        sum += checksum_of_tensor(entry->name, dtype_traits_of(entry->dtype)->safetensors, entry->dims, entry->rank);
    }
    for (size_t i = 0; i < metadata_count; i++)
        if (strcmp(metadata[i].key, CHECKSUM_KEY) != 0 && strcmp(metadata[i].key, CHECKSUM_TENSORS_KEY) != 0)
            w->texts[w->text_count++] = metadata[i];
    w->texts[w->text_count++] = (safetensors_text){CHECKSUM_TENSORS_KEY, w->tensor_checksums};
    for (size_t i = 0; i < w->text_count; i++)
        sum += checksum_of_text(w->texts[i].key, w->texts[i].value);
    checksum_print(sum, w->checksum);
    w->texts[w->text_count++] = (safetensors_text){CHECKSUM_KEY, w->checksum};
    return REMAT_OK;
}

/* ---- the header ---- */

/* Room for the header, generously: a letter may become six, a number has at most 20 digits. */
static size_t header_room(const weights *w)
{
    size_t room = 64;
    for (size_t i = 0; i < w->count; i++)
        room += 6 * strlen(w->entries[i].name) + 128 + 24 * w->entries[i].rank;
    for (size_t i = 0; i < w->text_count; i++)
        room += 6 * (strlen(w->texts[i].key) + strlen(w->texts[i].value)) + 16;
    return room;
}

static void write_metadata(output *out, const weights *w)
{
    output_text(out, "\"__metadata__\":{");
    for (size_t i = 0; i < w->text_count; i++) {
        output_text(out, i ? "," : "");
        output_quoted(out, w->texts[i].key);
        output_text(out, ":");
        output_quoted(out, w->texts[i].value);
    }
    output_text(out, "}");
}

static void write_entry(output *out, const safetensors_entry *entry, uint64_t *offset)
{
    uint64_t bytes = 0;
    entry_bytes(entry, &bytes);
    output_quoted(out, entry->name);
    output_text(out, ":{\"dtype\":\"");
    output_text(out, dtype_traits_of(entry->dtype)->safetensors);
    output_text(out, "\",\"shape\":[");
    for (uint32_t i = 0; i < entry->rank; i++) {
        output_text(out, i ? "," : "");
        output_number(out, entry->dims[i]);
    }
    output_text(out, "],\"data_offsets\":[");
    output_number(out, *offset);
    output_text(out, ",");
    output_number(out, *offset += bytes);
    output_text(out, "]}");
}

static remat_status write_header(const weights *w, FILE *stream)
{
    output *out = remat_alloc(w->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, w->context, stream);
    output_text(out, "{");
    write_metadata(out, w);
    uint64_t offset = 0;
    for (size_t i = 0; i < w->count; i++) {
        output_text(out, ",");
        write_entry(out, &w->entries[i], &offset);
    }
    output_text(out, "}");
    remat_status status = output_end(out);
    remat_release(w->context, out, 1, sizeof *out);
    return status;
}

/* Its length has to stand in front of it, and a pipe cannot be wound back: it is made in memory first. */
static remat_status make_header(weights *w)
{
    w->header_room = header_room(w);
    w->header = remat_alloc(w->context, w->header_room, 1);
    if (!w->header)
        return REMAT_NO_MEMORY;
    FILE *stream = fmemopen(w->header + 8, w->header_room - 16, "w");
    if (!stream)
        return remat_fail(w->context, REMAT_NO_MEMORY, NULL, "no memory for a header: %s", strerror(errno));
    remat_status status = write_header(w, stream);
    long length = ftell(stream);
    fclose(stream);
    REMAT_TRY(status);
    w->header_bytes = 8 + (size_t)length;
    while (w->header_bytes % 8 != 0)
        w->header[w->header_bytes++] = ' ';
    uint64_t stated = w->header_bytes - 8;
    if (stated > SAFETENSORS_MAX_HEADER)
        return remat_fail(w->context, REMAT_INVALID, NULL, "a header of %llu bytes; a file can have at most %d",
                          (unsigned long long)stated, SAFETENSORS_MAX_HEADER);
    memcpy(w->header, &stated, 8);
    return REMAT_OK;
}

/* ---- the file ---- */

static remat_status write_values(const weights *w, size_t entry, FILE *stream, bool *good)
{
    const void *data;
    uint64_t bytes = 0;
    REMAT_TRY(open_values(w, entry, &data, &bytes));
    *good = bytes == 0 || fwrite(data, 1, bytes, stream) == bytes;
    close_values(w, entry, bytes);
    return REMAT_OK;
}

static remat_status write_all(const void *user, FILE *stream)
{
    const weights *w = user;
    bool good = fwrite(w->header, 1, w->header_bytes, stream) == w->header_bytes;
    for (size_t i = 0; i < w->count && good; i++)
        REMAT_TRY(write_values(w, i, stream, &good));
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = w->path;
    return good ? REMAT_OK : remat_fail(w->context, REMAT_IO, &place, "writing failed: %s", strerror(errno));
}

remat_status safetensors_save(remat_context *context, const char *path, const safetensors_entry *entries, size_t count,
                              const safetensors_text *metadata, size_t metadata_count, const safetensors_source *source)
{
    weights w = {.context = context, .path = path, .entries = entries, .count = count, .source = source};
    remat_status status = check_entries(&w);
    if (status == REMAT_OK)
        status = make_checksums(&w, metadata, metadata_count);
    if (status == REMAT_OK)
        status = make_header(&w);
    if (status == REMAT_OK)
        status = output_save(context, path, write_all, &w);
    remat_release(context, w.header, w.header_room, 1);
    remat_release(context, w.texts, metadata_count + 2, sizeof *w.texts);
    remat_release(context, w.tensor_checksums, count + 1, CHECKSUM_DIGITS);
    remat_release(context, w.by_name, count, sizeof *w.by_name);
    return status;
}
