#include "file_bytes.h"
#include "shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 16 };

/* JSON, and so a graph of some million actions, may be this large. Of other text the readers take 256 MiB. */
static const size_t most_json = (size_t)1 << 30, most_other = ((size_t)256 << 20) + PART;
/* ONNX files have no more. They are no text, so they may have NUL bytes. */
static const size_t most_onnx = (size_t)1 << 31;

static bool is_onnx(const file_bytes *file)
{
    return file->count > 0 && (file->bytes[0] == 0x08 || file->bytes[0] == 0x12 || file->bytes[0] == 0x1a);
}

static bool is_json(const file_bytes *file)
{
    size_t blank = 0;
    while (blank < file->count && blank < PART && strchr(" \t\r\n\xef\xbb\xbf", file->bytes[blank]))
        blank++;
    return blank < file->count && file->bytes[blank] == '{';
}

/* Reads the next part. *more is false behind the last one, or behind more than a reader takes. */
static remat_status read_part(FILE *stream, file_bytes *file, size_t *capacity, bool *more)
{
    if (file->count + PART > *capacity) {
        size_t wanted = *capacity ? 2 * *capacity : 4 * PART;
        char *moved = realloc(file->bytes, wanted);
        if (!moved)
            return REMAT_NO_MEMORY;
        file->bytes = moved;
        *capacity = wanted;
    }
    size_t got = fread(file->bytes + file->count, 1, PART, stream);
    const bool has_nul = memchr(file->bytes + file->count, 0, got);
    file->count += got;
    const bool onnx = is_onnx(file);
    *more = got > 0 && (onnx || !has_nul) && (onnx || file->count <= most_other || is_json(file));
    if (ferror(stream)) {
        fprintf(stderr, "remat: %s: cannot be read: %s\n", shown(file->name), strerror(errno));
        return REMAT_IO;
    }
    if (file->count <= (onnx ? most_onnx : most_json))
        return REMAT_OK;
    fprintf(stderr, "remat: %s: longer than %d GiB, the most that %s may be\n", shown(file->name), onnx ? 2 : 1,
            onnx ? "an ONNX file" : "JSON");
    return REMAT_BAD_INPUT;
}

/* ---- files that belong elsewhere ---- */

static bool begins_with(const file_bytes *file, const char *text, size_t length)
{
    return file->count >= length && memcmp(file->bytes, text, length) == 0;
}

/* 8 bytes with the length of a header, and the header: an object of JSON. */
static bool is_safetensors(const file_bytes *file)
{
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0 && file->count > 8;)
        length = length << 8 | (unsigned char)file->bytes[i];
    return length >= 2 && length <= (uint64_t)100 << 20 && file->bytes[8] == '{';
}

/* A zip archive whose first file has this in its name. */
static bool is_archive_of(const file_bytes *file, const char *name)
{
    size_t head = file->count < 256 ? file->count : 256;
    return begins_with(file, "PK\3\4", 4) && memmem(file->bytes, head, name, strlen(name));
}

/* Says where weights and arrays belong, if the file has some. */
static remat_status refuse_data(const file_bytes *file)
{
    if (is_safetensors(file) || is_archive_of(file, "/data.pkl"))
        fprintf(stderr,
                "remat: %s: this is a weights file; `remat eval`, `predict`, `generate`, `train` and `convert` take it "
                "with --weights, besides MODEL.ini\n",
                shown(file->name));
    else if (begins_with(file, "\x93NUMPY", 6) || is_archive_of(file, ".npy"))
        fprintf(stderr, "remat: %s: these are NumPy arrays; a model names them in [Dataset]: inputs = FILE\n",
                shown(file->name));
    else
        return REMAT_OK;
    return REMAT_BAD_INPUT;
}

remat_status file_bytes_read(remat_context *context, const char *path, file_bytes *file)
{
    FILE *stream;
    *file = (file_bytes){0};
    remat_status status = command_open(context, path, &stream, &file->name);
    if (status != REMAT_OK)
        return status;
    size_t capacity = 0;
    for (bool more = true; status == REMAT_OK && more;)
        status = read_part(stream, file, &capacity, &more);
    if (status == REMAT_NO_MEMORY)
        fprintf(stderr, "remat: %s: there is no memory to read it\n", shown(file->name));
    command_close(context, stream, REMAT_OK);
    return status == REMAT_OK ? refuse_data(file) : status;
}

void file_bytes_free(file_bytes *file)
{
    free(file->bytes);
    file->bytes = NULL;
    file->count = 0;
}

FILE *file_bytes_open(const file_bytes *file)
{
    /* Not every system opens a stream over no bytes at all. */
    return file->count ? fmemopen(file->bytes, file->count, "r") : fopen("/dev/null", "r");
}

remat_status file_bytes_tell(remat_context *context, const file_bytes *file, remat_file_kind *kind)
{
    FILE *stream = file_bytes_open(file);
    if (!stream)
        return REMAT_NO_MEMORY;
    remat_status status = remat_file_kind_tell(context, stream, file->name, kind);
    fclose(stream);
    return status;
}

remat_status file_bytes_tell_or(remat_context *context, const file_bytes *file, remat_file_kind otherwise,
                                remat_file_kind *kind)
{
    remat_status status = file_bytes_tell(context, file, kind);
    if (status == REMAT_NO_MEMORY)
        return fprintf(stderr, "remat: %s: there is no memory to read it\n", shown(file->name)), status;
    if (status != REMAT_OK)
        *kind = otherwise;
    return REMAT_OK;
}

remat_status file_bytes_refuse_result(const file_bytes *file, remat_file_kind kind, bool takes_models)
{
    if (kind == REMAT_FILE_PLAN || kind == REMAT_FILE_GRAPH_PLAN)
        fprintf(stderr, "remat: %s: this is a plan; give the %s%s that it is for\n", shown(file->name),
                kind == REMAT_FILE_PLAN ? "profile" : "graph", takes_models ? " or the model" : "");
    else if (kind == REMAT_FILE_RUN)
        fprintf(stderr, "remat: %s: this is the log of a run; give %s\n", shown(file->name),
                takes_models ? "the model that was trained" : "a profile or a graph");
    else
        return REMAT_OK;
    return REMAT_BAD_INPUT;
}
