/* The inside of a disk store: what the caller's side (disk_store.c) and the background thread (disk_worker.c) share.
 *
 * Jobs have tickets 1, 2, 3 ... and run in that order, so one comparison says whether a job has ended: done >= ticket.
 * They are in a ring: ticket t is at (t - 1) % capacity. */
#ifndef REMAT_STORE_DISK_WORKER_H
#define REMAT_STORE_DISK_WORKER_H

#include <pthread.h>

#include "store/disk_store.h"

typedef struct disk_job {
    bool write;
    size_t block;
    uint64_t offset, bytes;
    const void *source; /* of a write */
    void *target;       /* of a read */
} disk_job;

typedef enum disk_fault { DISK_FINE, DISK_WRITE_FAILED, DISK_READ_FAILED, DISK_TRUNCATED, DISK_CHANGED } disk_fault;

/* What went wrong. The caller's thread puts it on the context, which the background thread must not use. */
typedef struct disk_failure {
    disk_fault fault;
    int error; /* errno */
    size_t block;
    uint64_t offset, bytes;
} disk_failure;

/* What the caller's side knows of a block. */
typedef struct disk_block {
    disk_slot slot;
    bool stored;     /* it was put */
    uint64_t bytes;  /* that were put */
    uint64_t ticket; /* of its last job; 0: none yet */
    void *target;    /* of a prefetch that get has not used yet; NULL: none */
} disk_block;

struct disk_store {
    remat_context *context;
    char *directory;
    disk_io io;
    int file; /* -1: not open */
    size_t block_count, capacity;
    disk_block *blocks; /* the caller's side only */
    uint64_t *hashes;   /* of the blocks; used only by the thread, except for a reset while it is idle */
    disk_job *jobs;
    pthread_t thread;
    bool has_locks, has_thread;

    pthread_mutex_t mutex;   /* guards everything below, and jobs */
    pthread_cond_t work;     /* the thread waits here */
    pthread_cond_t progress; /* the caller waits here */
    uint64_t asked, done;    /* tickets given out; jobs that have ended */
    bool stop;               /* the thread ends */
    bool abandon;            /* jobs are skipped */
    disk_failure failure;    /* the first */
    remat_store_counters counters;
    uint64_t first_use_ns, last_use_ns;
};

/* The system's `open` for file systems that cannot make files without a name: the file has a name for the shortest
 * possible time. */
int disk_io_open_named(const char *directory);

uint64_t disk_clock_ns(void);

/* The thread's function; `store` is a disk_store. */
void *disk_worker_run(void *store);

#endif
