/* A disk that fails on command: the system's functions behind a disk_io, with one fault put in. */
#ifndef TESTS_FAULTY_DISK_H
#define TESTS_FAULTY_DISK_H

#include "support/fixture.h"

#include "store/disk_store.h"

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_ERROR,     /* -1 with `error` */
    FAULT_NOTHING,   /* 0 bytes */
    FAULT_SHORT,     /* half of the bytes, as the system may; not a failure */
    FAULT_FILLS_UP,  /* writes: half of the bytes, and from the next call on -1 with `error` */
    FAULT_INTERRUPT, /* -1 with EINTR; not a failure either */
    FAULT_FLIP,      /* reads: bit `bit` of what is read is turned */
    FAULT_TOO_MUCH,  /* says that it did more than it was asked to */
} fault_kind;

typedef struct faulty_call {
    fault_kind kind;
    uint64_t at;    /* the number of the call that fails, from 1; 0: all */
    uint64_t calls; /* so far */
} faulty_call;

typedef struct faulty_disk {
    faulty_call open, reserve, write, read;
    int error;
    uint64_t bit;
    int file;      /* the last one opened */
    int opened;    /* how many are open now */
    sem_t *gate;   /* where not NULL, every write and read passes through it */
    unsigned slow; /* microseconds that every write and read takes longer */
} faulty_disk;

static inline fault_kind faulty_next(faulty_call *call)
{
    call->calls++;
    return call->at == 0 || call->at == call->calls ? call->kind : FAULT_NONE;
}

static inline int faulty_open(void *user, const char *directory)
{
    faulty_disk *disk = user;
    if (faulty_next(&disk->open) != FAULT_NONE) {
        errno = disk->error;
        return -1;
    }
    disk->file = disk_io_system().open(NULL, directory);
    disk->opened += disk->file >= 0;
    return disk->file;
}

static inline int faulty_reserve(void *user, int file, uint64_t bytes)
{
    faulty_disk *disk = user;
    if (faulty_next(&disk->reserve) != FAULT_NONE) {
        errno = disk->error;
        return -1;
    }
    return disk_io_system().reserve(NULL, file, bytes);
}

static inline int faulty_close(void *user, int file)
{
    faulty_disk *disk = user;
    disk->opened--;
    return disk_io_system().close(NULL, file);
}

static inline void faulty_gate(faulty_disk *disk)
{
    while (disk->gate && sem_wait(disk->gate) != 0)
        ;
    if (disk->slow)
        usleep(disk->slow);
}

static inline ssize_t faulty_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    faulty_gate(disk);
    fault_kind kind = faulty_next(&disk->write);
    if (disk->write.kind == FAULT_FILLS_UP && disk->write.calls > disk->write.at)
        kind = FAULT_ERROR;
    errno = kind == FAULT_INTERRUPT ? EINTR : disk->error;
    if (kind == FAULT_ERROR || kind == FAULT_INTERRUPT)
        return -1;
    if (kind == FAULT_NOTHING)
        return 0;
    if ((kind == FAULT_SHORT || kind == FAULT_FILLS_UP) && bytes > 1)
        bytes /= 2;
    ssize_t wrote = disk_io_system().write(NULL, file, from, bytes, offset);
    return kind == FAULT_TOO_MUCH ? wrote + 1 : wrote;
}

static inline ssize_t faulty_read(void *user, int file, void *to, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    faulty_gate(disk);
    fault_kind kind = faulty_next(&disk->read);
    errno = kind == FAULT_INTERRUPT ? EINTR : disk->error;
    if (kind == FAULT_ERROR || kind == FAULT_INTERRUPT)
        return -1;
    if (kind == FAULT_NOTHING)
        return 0;
    if (kind == FAULT_SHORT && bytes > 1)
        bytes /= 2;
    ssize_t got = disk_io_system().read(NULL, file, to, bytes, offset);
    if (kind == FAULT_FLIP)
        ((unsigned char *)to)[disk->bit / 8] ^= (unsigned char)(1u << disk->bit % 8);
    return kind == FAULT_TOO_MUCH ? got + 1 : got;
}

static inline disk_io faulty_disk_io(faulty_disk *disk)
{
    return (disk_io){faulty_open, faulty_reserve, faulty_write, faulty_read, faulty_close, disk};
}

/* A fresh directory; removing it fails the test where anything is left in it. */
static inline char *make_directory(char path[64])
{
    snprintf(path, 64, "/tmp/remat-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline size_t count_files(const char *directory)
{
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    size_t count = 0;
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2; /* . and .. */
}

static inline void remove_directory(const char *path)
{
    assert_int_equal(rmdir(path), 0);
}

/* Bytes that tell which block they belong to and how often it was written. */
static inline void fill_block(unsigned char *bytes, size_t count, uint64_t block, uint64_t version)
{
    test_random random = {block * 1000003u + version};
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)test_random_next(&random);
}

#endif
