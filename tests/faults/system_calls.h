/* The system calls that the tests let fail. */
#ifndef REMAT_TESTS_SYSTEM_CALLS_H
#define REMAT_TESTS_SYSTEM_CALLS_H

#include <errno.h>
#include <sys/syscall.h>

/* SLOW: may be interrupted. MOVES: its third argument is a number of bytes, and it may do fewer. FILLS: needs room on the disk.
 * PAGES: asks for memory. */
enum { CALL_SLOW = 1, CALL_MOVES = 2, CALL_FILLS = 4, CALL_PAGES = 8 };

typedef struct system_call {
    long number;
    const char *name;
    int error;
    unsigned properties;
} system_call;

#define CALL(name, error, properties)        \
    {                                        \
        SYS_##name, #name, error, properties \
    }
static const system_call system_calls[] = {
    CALL(read, EIO, CALL_SLOW | CALL_MOVES),
    CALL(pread64, EIO, CALL_SLOW | CALL_MOVES),
    CALL(readv, EIO, CALL_SLOW),
    CALL(write, ENOSPC, CALL_SLOW | CALL_MOVES | CALL_FILLS),
    CALL(pwrite64, ENOSPC, CALL_SLOW | CALL_MOVES | CALL_FILLS),
    CALL(writev, ENOSPC, CALL_SLOW | CALL_FILLS),
    CALL(sendfile, EIO, CALL_SLOW),
    CALL(copy_file_range, EIO, CALL_SLOW),
    CALL(open, EMFILE, CALL_SLOW),
    CALL(openat, EMFILE, CALL_SLOW),
    CALL(creat, EMFILE, CALL_SLOW | CALL_FILLS),
    CALL(close, EIO, 0),
    CALL(fsync, EIO, CALL_SLOW),
    CALL(fdatasync, EIO, CALL_SLOW),
    CALL(lseek, EINVAL, 0),
    CALL(stat, EIO, 0),
    CALL(lstat, EIO, 0),
    CALL(fstat, EIO, 0),
    CALL(newfstatat, EIO, 0),
    CALL(statx, EIO, 0),
    CALL(statfs, EIO, 0),
    CALL(fstatfs, EIO, 0),
    CALL(access, EACCES, 0),
    CALL(faccessat, EACCES, 0),
    CALL(faccessat2, EACCES, 0),
    CALL(readlink, EIO, 0),
    CALL(readlinkat, EIO, 0),
    CALL(getcwd, ENOENT, 0),
    CALL(getdents64, EIO, 0),
    CALL(rename, ENOSPC, CALL_FILLS),
    CALL(renameat, ENOSPC, CALL_FILLS),
    CALL(renameat2, ENOSPC, CALL_FILLS),
    CALL(link, ENOSPC, CALL_FILLS),
    CALL(linkat, ENOSPC, CALL_FILLS),
    CALL(unlink, EIO, 0),
    CALL(unlinkat, EIO, 0),
    CALL(mkdir, ENOSPC, CALL_FILLS),
    CALL(ftruncate, EIO, CALL_SLOW),
    CALL(fallocate, ENOSPC, CALL_SLOW | CALL_FILLS),
    CALL(flock, ENOLCK, CALL_SLOW),
    CALL(fcntl, EINVAL, 0),
    CALL(ioctl, ENOTTY, 0),
    CALL(fchmod, EPERM, 0),
    CALL(fchown, EPERM, 0),
    CALL(dup, EMFILE, 0),
    CALL(dup2, EMFILE, CALL_SLOW),
    CALL(pipe2, EMFILE, 0),
    CALL(memfd_create, EMFILE, 0),
    CALL(getrandom, ENOSYS, CALL_SLOW),
    CALL(prlimit64, EPERM, 0),
    CALL(sched_getaffinity, EINVAL, 0),
    CALL(clone, EAGAIN, 0),
    CALL(clone3, EAGAIN, 0),
    CALL(mmap, ENOMEM, CALL_PAGES),
    CALL(mremap, ENOMEM, CALL_PAGES),
    CALL(mprotect, ENOMEM, CALL_PAGES),
    CALL(brk, ENOMEM, CALL_PAGES),
};
#undef CALL

#endif
