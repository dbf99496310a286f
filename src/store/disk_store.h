/* Blocks on disk, written and read by a background thread while the caller computes.
 *
 *     caller      put 0   put 1        ...      prefetch 1   get 1 (waits)   prefetch 0   get 0
 *                   \       \                        \      /                     \      /
 *     thread        write 0  write 1                  read 1                       read 0
 *
 * One nameless file in a directory that the user names: nothing is left of it when the program ends, however it ends.
 * The caller plans the file: block -> offset and room. Slots may overlap where the blocks are never wanted together:
 * jobs run strictly in the order in which they were asked for, and a block that was written over is noticed.
 *
 * Every block's 64-bit hash stays in memory, never in the file, and is checked when the block comes back: what `get`
 * hands out is what `put` was given, or there is an error.
 *
 * Failures happen in the thread but come back from the calls: the first failure makes all later calls return REMAT_IO
 * (with directory, block and offset on the context) until disk_store_reset; jobs still queued are passed over.
 *
 * All memory comes from the context at creation (the thread's stack of 256 KiB apart). What the kernel caches of the
 * file is its own, and given up under pressure. One caller thread at a time. */
#ifndef REMAT_STORE_DISK_STORE_H
#define REMAT_STORE_DISK_STORE_H

#include <sys/types.h>

#include <remat/store.h>

typedef struct disk_store disk_store;

/* Where a block lies in the file, and how many bytes it has at most. */
typedef struct disk_slot {
    uint64_t offset, bytes;
} disk_slot;

/* What the store asks of the system; tests put faults in. All return as the system calls do, -1 with errno; `open`
 * makes a file in `directory` that has no name (any more); `reserve` makes sure of room for `bytes` bytes. `write` and
 * `read` are called by the background thread, the others by the caller's. */
typedef struct disk_io {
    int (*open)(void *user, const char *directory);
    int (*reserve)(void *user, int file, uint64_t bytes);
    ssize_t (*write)(void *user, int file, const void *from, size_t bytes, uint64_t offset);
    ssize_t (*read)(void *user, int file, void *to, size_t bytes, uint64_t offset);
    int (*close)(void *user, int file);
    void *user;
} disk_io;
/* The real ones; `user` is NULL. */
disk_io disk_io_system(void);

typedef struct disk_store_options {
    const char *directory;  /* must exist; copied */
    const disk_slot *slots; /* of blocks 0..slot_count-1; copied */
    size_t slot_count;
    size_t queue_length; /* jobs that may wait at once; 0: 16. A call that finds the queue full waits. */
    const disk_io *io;   /* NULL: the system's; copied */
} disk_store_options;

/* Opens the file, makes sure of the room for all slots and starts the thread. REMAT_IO (a full disk shows here),
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status disk_store_create(remat_context *context, const disk_store_options *options, disk_store **store);
/* Waits for the job that is running, if any, passes over the others, and gives everything back. NULL is fine. */
void disk_store_destroy(disk_store *store);

/* Writes `bytes` bytes as `block`, behind the caller's back: `source` must stay as it is until disk_store_wait(block)
 * or a later job's end. A block may be put again; that replaces it. More than the slot holds is REMAT_INVALID. */
remat_status disk_store_put(disk_store *store, size_t block, const void *source, uint64_t bytes);

/* Begins to read `block` into `target`, which belongs to the store until disk_store_get or disk_store_wait.
 * `bytes` must be those that were put. REMAT_INVALID where the block was never put. */
remat_status disk_store_prefetch(disk_store *store, size_t block, void *target, uint64_t bytes);

/* Hands `block` out in `target`: waits for the prefetch into this very target, or reads now where there was none.
 * On failure the contents of `target` mean nothing. */
remat_status disk_store_get(disk_store *store, size_t block, void *target, uint64_t bytes);

/* Waits until the last job on `block` (write or read) is over: its buffer is the caller's again, even on failure.
 * Jobs run in order: all jobs asked for before it are over too. */
remat_status disk_store_wait(disk_store *store, size_t block);
/* Whether it is over already; never waits. */
bool disk_store_idle(disk_store *store, size_t block);
/* Waits for everything. */
remat_status disk_store_drain(disk_store *store);

/* Waits for the running job, passes over the others, forgets all blocks, failures and counters: ready for another run
 * in the same file. */
void disk_store_reset(disk_store *store);

/* What happened since creation or reset; only the fields about the disk are set. */
void disk_store_count(disk_store *store, remat_store_counters *counters);

#endif
