#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What was opened. */
typedef struct opened {
    int file;
    int byte; /* that was read already; EOF: none */
} opened;

/* A pipe without a writer looks like one that has ended. Someone may be about to open it: `mkfifo p; make > p &`. */
static bool has_writer(opened *from)
{
    enum { TRIES = 20, MILLISECONDS = 100 };
    for (int i = 0; i < TRIES; i++) {
        struct pollfd asked = {.fd = from->file, .events = POLLIN};
        unsigned char byte;
        if (poll(&asked, 1, MILLISECONDS) > 0)
            return true;
        ssize_t got = read(from->file, &byte, 1);
        if (got == 1)
            from->byte = byte;
        if (got == 1 || (got < 0 && errno == EAGAIN)) /* it has one that has not written yet */
            return true;
    }
    return false;
}

/* NULL, or what is wrong. */
static const char *check(opened *from, bool regular)
{
    struct stat info;
    if (fstat(from->file, &info) != 0)
        return strerror(errno);
    if (S_ISDIR(info.st_mode))
        return "it is a folder";
    if (regular && !S_ISREG(info.st_mode))
        return "not a regular file; it is read more than once";
    if (S_ISFIFO(info.st_mode) && !has_writer(from))
        return "nobody writes to this pipe";
    int flags = fcntl(from->file, F_GETFL);
    return flags < 0 || fcntl(from->file, F_SETFL, flags & ~O_NONBLOCK) < 0 ? strerror(errno) : NULL;
}

static remat_status open_checked(remat_context *context, const char *path, bool regular, FILE **stream)
{
    /* Without O_NONBLOCK, opening a pipe would wait for its writer. */
    opened from = {open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), EOF};
    const char *wrong = from.file < 0 ? strerror(errno) : check(&from, regular);
    *stream = wrong ? NULL : fdopen(from.file, "r");
    if (*stream) {
        ungetc(from.byte, *stream); /* which does nothing for EOF */
        return REMAT_OK;
    }
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    remat_status status =
        remat_fail(context, REMAT_IO, &place, "cannot be opened: %s", wrong ? wrong : strerror(errno));
    if (from.file >= 0)
        close(from.file);
    return status;
}

remat_status input_open(remat_context *context, const char *path, FILE **stream)
{
    return open_checked(context, path, false, stream);
}

remat_status input_open_regular(remat_context *context, const char *path, FILE **stream)
{
    return open_checked(context, path, true, stream);
}

remat_status input_exists(remat_context *context, const char *path, bool *exists)
{
    *exists = access(path, F_OK) == 0;
    if (*exists || errno == ENOENT || errno == ENOTDIR)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    return remat_fail(context, REMAT_IO, &place, "cannot be opened: %s", strerror(errno));
}

remat_status remat_input_open(remat_context *context, const char *path, FILE **stream)
{
    return input_open(context, path, stream);
}

remat_status input_check_length(remat_context *context, const char *name, uint64_t bytes)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = name;
    if (bytes <= INPUT_MOST_BYTES)
        return REMAT_OK;
    return remat_fail(context, REMAT_BAD_INPUT, &place, "longer than %llu MiB, the most that is read of such a text",
                      (unsigned long long)(INPUT_MOST_BYTES >> 20));
}
