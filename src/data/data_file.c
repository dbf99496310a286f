#include "data/data_file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static remat_status hold_all(data_file *file)
{
    unsigned char *held = remat_alloc(file->context, file->bytes, 1);
    if (!held)
        return REMAT_NO_MEMORY;
    remat_status status = data_file_read(file, 0, held, file->bytes);
    if (status != REMAT_OK) {
        remat_release(file->context, held, file->bytes, 1);
        return status;
    }
    file->held = held;
    file->held_bytes = file->bytes;
    return REMAT_OK;
}

remat_status data_file_open(remat_context *context, const char *path, uint64_t hold, data_file *file)
{
    *file = (data_file){.context = context, .descriptor = -1, .path = remat_text_copy(context, path)};
    if (!file->path)
        return REMAT_NO_MEMORY;
    remat_place place = data_file_place(file);
    struct stat info;
    /* Without O_NONBLOCK, opening a pipe would wait for its writer before the check below. */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor < 0 || fstat(file->descriptor, &info) != 0)
        return remat_fail(context, REMAT_IO, &place, "cannot be opened: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return remat_fail(context, REMAT_IO, &place, "not a regular file; data is read at any place, again and again");
    file->bytes = file->opened_bytes = (uint64_t)info.st_size;
    file->modified = info.st_mtim;
    file->device = (uint64_t)info.st_dev;
    file->number = (uint64_t)info.st_ino;
    return file->bytes <= hold ? hold_all(file) : REMAT_OK;
}

void data_file_close(data_file *file)
{
    if (!file->context)
        return;
    remat_release(file->context, file->held, file->held_bytes, 1);
    if (file->descriptor >= 0)
        close(file->descriptor);
    remat_text_release(file->context, file->path);
    *file = (data_file){.descriptor = -1};
}

remat_status data_file_narrow(data_file *file, uint64_t at, uint64_t bytes)
{
    remat_place place = data_file_place(file);
    if (at > file->bytes || bytes > file->bytes - at)
        return remat_fail(file->context, REMAT_IO, &place, "ends before byte %llu", (unsigned long long)(at + bytes));
    file->base += at;
    file->held_base += at;
    file->bytes = bytes;
    return REMAT_OK;
}

void data_file_replace(data_file *file, unsigned char *held, uint64_t bytes)
{
    remat_release(file->context, file->held, file->held_bytes, 1);
    file->held = held;
    file->held_base = file->base = 0;
    file->held_bytes = file->bytes = bytes;
}

remat_status data_file_read(const data_file *file, uint64_t offset, void *to, size_t bytes)
{
    remat_place place = data_file_place(file);
    if (offset > file->bytes || bytes > file->bytes - offset)
        return remat_fail(file->context, REMAT_IO, &place, "ends before byte %llu",
                          (unsigned long long)(offset + bytes));
    if (file->held) {
        memcpy(to, file->held + file->held_base + offset, bytes);
        return REMAT_OK;
    }
    char *at = to;
    offset += file->base;
    while (bytes) {
        ssize_t got = pread(file->descriptor, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return remat_fail(file->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
        if (got == 0)
            return remat_fail(file->context, REMAT_IO, &place, "became shorter while it was read");
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return REMAT_OK;
}

remat_status data_file_check_unchanged(const data_file *file)
{
    remat_place place = data_file_place(file);
    struct stat info;
    if (fstat(file->descriptor, &info) != 0)
        return remat_fail(file->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
    if ((uint64_t)info.st_size == file->opened_bytes && info.st_mtim.tv_sec == file->modified.tv_sec &&
        info.st_mtim.tv_nsec == file->modified.tv_nsec)
        return REMAT_OK;
    return remat_fail(file->context, REMAT_IO, &place, "was changed while it was in use");
}
