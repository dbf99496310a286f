#include "data/torch_write.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/output_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- bytes ---- */

/* Bytes that grow. After a failure nothing is added, and `status` says why. */
typedef struct byte_list {
    remat_context *context;
    unsigned char *bytes;
    size_t count, capacity;
    remat_status status;
} byte_list;

static void put(byte_list *list, const void *bytes, size_t count)
{
    if (list->status == REMAT_OK)
        list->status = remat_grow(list->context, (void **)&list->bytes, &list->capacity, list->count + count, 1);
    if (list->status != REMAT_OK)
        return;
    memcpy(list->bytes + list->count, bytes, count);
    list->count += count;
}

static void put_text(byte_list *list, const char *text)
{
    put(list, text, strlen(text));
}

static void put_number(byte_list *list, uint64_t number, unsigned bytes)
{
    unsigned char text[8];
    for (unsigned i = 0; i < bytes; i++)
        text[i] = (unsigned char)(number >> 8 * i);
    put(list, text, bytes);
}

static void release(byte_list *list)
{
    remat_release(list->context, list->bytes, list->capacity, 1);
}

/* CRC-32 as ZIP has it, a bit at a time from a small table. */
static uint32_t checksum(uint32_t sum, const unsigned char *bytes, uint64_t count)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    sum = ~sum;
    for (uint64_t i = 0; i < count; i++)
        sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 0xff];
    return ~sum;
}

/* ---- the pickle ---- */

static void pickle_text(byte_list *list, const char *text)
{
    put_text(list, "X");
    put_number(list, strlen(text), 4);
    put_text(list, text);
}

static void pickle_number(byte_list *list, uint64_t number)
{
    const bool small = number <= INT32_MAX;
    put_text(list, small ? "J" : "\x8a\x08");
    put_number(list, number, small ? 4 : 8);
}

/* _rebuild_tensor_v2(("storage", FloatStorage, KEY, "cpu", values), 0, shape, strides, False, OrderedDict()) */
static void pickle_tensor(byte_list *list, const safetensors_entry *entry, size_t key, uint64_t values)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", key);
    put_text(list, "ctorch._utils\n_rebuild_tensor_v2\n((");
    pickle_text(list, "storage");
    put_text(list, "ctorch\nFloatStorage\n");
    pickle_text(list, number);
    pickle_text(list, "cpu");
    pickle_number(list, values);
    put_text(list, "tQ");
    pickle_number(list, 0);
    put_text(list, "(");
    for (uint32_t d = 0; d < entry->rank; d++)
        pickle_number(list, entry->dims[d]);
    put_text(list, "t(");
    for (uint32_t d = 0; d < entry->rank; d++) {
        uint64_t stride = 1;
        for (uint32_t inner = d + 1; inner < entry->rank; inner++)
            stride *= entry->dims[inner];
        pickle_number(list, stride);
    }
    put_text(list, "t\x89"
                   "ccollections\nOrderedDict\n)RtR");
}

/* ---- the archive ---- */

typedef struct torch_archive {
    const char *path; /* for messages */
    const safetensors_entry *entries;
    size_t count;
    const safetensors_source *source;
    byte_list pickle, directory;
    uint64_t *values; /* of each entry */
    uint64_t written; /* bytes so far */
    size_t member_count;
} torch_archive;

static remat_status write_bytes(const torch_archive *archive, FILE *stream, const void *bytes, uint64_t count)
{
    if (fwrite(bytes, 1, count, stream) == count)
        return REMAT_OK;
    const remat_place place = {archive->path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    return remat_fail(archive->pickle.context, REMAT_IO, &place, "writing failed: %s", strerror(errno));
}

/* The header of a member, and its entry in the directory. */
static remat_status write_header(torch_archive *archive, FILE *stream, const char *name, uint64_t bytes, uint32_t sum)
{
    byte_list header = {.context = archive->pickle.context};
    put_number(&header, UINT32_C(0x04034b50), 4);
    put_number(&archive->directory, UINT32_C(0x02014b50), 4);
    put_number(&archive->directory, 0, 2); /* made by */
    for (int i = 0; i < 2; i++) {          /* both have these fields */
        byte_list *list = i ? &archive->directory : &header;
        put_number(list, 0, 6);                    /* version, flags, method: stored */
        put_number(list, UINT32_C(0x00210000), 4); /* 1980-01-01 */
        put_number(list, sum, 4);
        put_number(list, bytes, 4);
        put_number(list, bytes, 4);
        put_number(list, strlen(name), 2);
        put_number(list, 0, 2); /* extra fields */
    }
    put_number(&archive->directory, 0, 8); /* comment, disk, attributes */
    put_number(&archive->directory, 0, 2);
    put_number(&archive->directory, archive->written, 4);
    put_text(&archive->directory, name);
    put_text(&header, name);
    remat_status status = header.status;
    if (status == REMAT_OK)
        status = write_bytes(archive, stream, header.bytes, header.count);
    archive->written += header.count + bytes;
    archive->member_count++;
    release(&header);
    return status == REMAT_OK ? archive->directory.status : status;
}

static remat_status write_member(torch_archive *archive, FILE *stream, const char *name, const void *bytes,
                                 uint64_t count)
{
    REMAT_TRY(write_header(archive, stream, name, count, checksum(0, bytes, count)));
    return write_bytes(archive, stream, bytes, count);
}

static remat_status write_values(torch_archive *archive, FILE *stream, size_t number)
{
    const safetensors_source *source = archive->source;
    const void *data = archive->entries[number].data;
    char name[40];
    snprintf(name, sizeof name, "archive/data/%zu", number);
    if (!data)
        REMAT_TRY(source->open(source->user, number, &data));
    remat_status status = write_member(archive, stream, name, data, archive->values[number] * sizeof(float));
    if (!archive->entries[number].data && source->close)
        source->close(source->user);
    return status;
}

static remat_status write_archive(const void *user, FILE *stream)
{
    torch_archive archive = *(const torch_archive *)user;
    archive.directory = (byte_list){.context = archive.pickle.context};
    remat_status status =
        write_member(&archive, stream, "archive/data.pkl", archive.pickle.bytes, archive.pickle.count);
    for (size_t i = 0; i < archive.count && status == REMAT_OK; i++)
        status = write_values(&archive, stream, i);
    if (status == REMAT_OK)
        status = write_member(&archive, stream, "archive/version", "3\n", 2);
    const uint64_t directory_bytes = archive.directory.count;
    put_number(&archive.directory, UINT32_C(0x06054b50), 4);
    put_number(&archive.directory, 0, 4); /* disks */
    put_number(&archive.directory, archive.member_count, 2);
    put_number(&archive.directory, archive.member_count, 2);
    put_number(&archive.directory, directory_bytes, 4);
    put_number(&archive.directory, archive.written, 4);
    put_number(&archive.directory, 0, 2); /* comment */
    if (status == REMAT_OK)
        status = archive.directory.status;
    if (status == REMAT_OK)
        status = write_bytes(&archive, stream, archive.directory.bytes, archive.directory.count);
    release(&archive.directory);
    return status;
}

static remat_status prepare(torch_archive *archive, const char *path)
{
    remat_context *context = archive->pickle.context;
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    uint64_t all = 0;
    bool fits = archive->count < 65000; /* members have numbers of 16 bits */
    put_text(&archive->pickle, "\x80\x02"
                               "ccollections\nOrderedDict\n)R(");
    for (size_t i = 0; i < archive->count; i++) {
        uint64_t values = 1;
        for (uint32_t d = 0; d < archive->entries[i].rank; d++)
            fits = fits && remat_multiply(values, archive->entries[i].dims[d], &values);
        archive->values[i] = values;
        fits = fits && values < UINT32_MAX && remat_add(&all, values * sizeof(float) + 1000);
        pickle_text(&archive->pickle, archive->entries[i].name);
        pickle_tensor(&archive->pickle, &archive->entries[i], i, values);
    }
    put_text(&archive->pickle, "u.");
    if (!fits || all >= UINT32_MAX)
        return remat_fail(context, REMAT_INVALID, &place,
                          "4 GiB or more have no room in such an archive; write FILE.safetensors instead");
    return archive->pickle.status;
}

remat_status torch_write(remat_context *context, const char *path, const safetensors_entry *entries, size_t count,
                         const safetensors_source *source)
{
    torch_archive archive = {
        .path = path, .entries = entries, .count = count, .source = source, .pickle = {.context = context}};
    archive.values = remat_alloc(context, count, sizeof *archive.values);
    remat_status status = archive.values || !count ? prepare(&archive, path) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = output_save(context, path, write_archive, &archive);
    release(&archive.pickle);
    remat_release(context, archive.values, count, sizeof *archive.values);
    return status;
}
