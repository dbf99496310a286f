#include "base/output.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void output_begin(output *out, remat_context *context, FILE *stream)
{
    out->context = context;
    out->stream = stream;
    out->status = REMAT_OK;
    out->used = 0;
}

static void flush(output *out)
{
    if (out->status == REMAT_OK && out->used && fwrite(out->buffer, 1, out->used, out->stream) != out->used)
        out->status = remat_fail(out->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    out->used = 0;
}

static void put(output *out, const char *bytes, size_t count)
{
    while (count) {
        if (out->used == sizeof out->buffer)
            flush(out);
        size_t room = sizeof out->buffer - out->used, part = count < room ? count : room;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        count -= part;
    }
}

void output_text(output *out, const char *text)
{
    put(out, text, strlen(text));
}

void output_number(output *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(out, digits + at, sizeof digits - at);
}

void output_quoted(output *out, const char *text)
{
    put(out, "\"", 1);
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\') {
            char escaped[2] = {'\\', *at};
            put(out, escaped, 2);
        } else if (byte < 0x20 || byte == 0x7f) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            put(out, escaped, 6);
        } else {
            put(out, at, 1);
        }
    }
    put(out, "\"", 1);
}

void output_field(output *out, const char *before, const char *key, uint64_t number)
{
    output_text(out, before);
    output_quoted(out, key);
    output_text(out, ": ");
    output_number(out, number);
}

void output_text_field(output *out, const char *before, const char *key, const char *text)
{
    output_text(out, before);
    output_quoted(out, key);
    output_text(out, ": ");
    output_quoted(out, text);
}

remat_status output_end(output *out)
{
    flush(out);
    if (out->status == REMAT_OK && fflush(out->stream) != 0)
        out->status = remat_fail(out->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    return out->status;
}

static remat_status write_and_sync(remat_context *context, FILE *stream, output_fn write, const void *user)
{
    REMAT_TRY(write(user, stream));
    if (fflush(stream) != 0 || fsync(fileno(stream)) != 0)
        return remat_fail(context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    return REMAT_OK;
}

/* A device or a pipe cannot be replaced by a new file: it is written to directly. */
static remat_status save_directly(remat_context *context, const char *path, output_fn write, const void *user)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    FILE *stream = fopen(path, "w");
    if (!stream)
        return remat_fail(context, REMAT_IO, &place, "cannot be opened: %s", strerror(errno));
    remat_status status = write(user, stream);
    if (fclose(stream) != 0 && status == REMAT_OK)
        status = remat_fail(context, REMAT_IO, &place, "writing failed: %s", strerror(errno));
    return status;
}

remat_status output_save(remat_context *context, const char *path, output_fn write, const void *user)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return save_directly(context, path, write, user);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    size_t bytes = strlen(path) + 32;
    char *beside = remat_alloc(context, bytes, 1);
    if (!beside)
        return REMAT_NO_MEMORY;
    snprintf(beside, bytes, "%s.%ld.tmp", path, (long)getpid());
    remat_status status = REMAT_OK;
    int descriptor = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!stream) {
        status = remat_fail(context, REMAT_IO, &place, "cannot be created: %s", strerror(errno));
        goto cleanup;
    }
    status = write_and_sync(context, stream, write, user);
cleanup:
    if (stream && fclose(stream) != 0 && status == REMAT_OK)
        status = remat_fail(context, REMAT_IO, &place, "writing failed: %s", strerror(errno));
    else if (!stream && descriptor >= 0)
        close(descriptor);
    if (status == REMAT_OK && rename(beside, path) != 0)
        status = remat_fail(context, REMAT_IO, &place, "cannot be replaced: %s", strerror(errno));
    if (status != REMAT_OK && descriptor >= 0)
        unlink(beside);
    remat_release(context, beside, bytes, 1);
    return status;
}
