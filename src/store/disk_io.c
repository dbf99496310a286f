#include "store/disk_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int disk_io_open_named(const char *directory)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/remat-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0 && unlink(path) != 0) {
        int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

static int system_open(void *user, const char *directory)
{
    (void)user;
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        file = disk_io_open_named(directory);
    return file;
}

/* Not posix_fallocate: where the file system cannot reserve, the C library would write into every page. There a full
 * disk shows when blocks are written. */
static int system_reserve(void *user, int file, uint64_t bytes)
{
    (void)user;
    struct rlimit limit;
    /* Past that limit the system would end the program with a signal. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    if (bytes == 0)
        return 0;
    int result;
    do
        result = fallocate(file, 0, 0, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        result = ftruncate(file, (off_t)bytes);
    return result;
}

static ssize_t system_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    (void)user;
    return pwrite(file, from, bytes, (off_t)offset);
}

static ssize_t system_read(void *user, int file, void *to, size_t bytes, uint64_t offset)
{
    (void)user;
    return pread(file, to, bytes, (off_t)offset);
}

static int system_close(void *user, int file)
{
    (void)user;
    return close(file);
}

disk_io disk_io_system(void)
{
    return (disk_io){system_open, system_reserve, system_write, system_read, system_close, NULL};
}
