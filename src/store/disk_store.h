/* Blocks on disk, written and read by a background thread while the caller computes.
 *
 *     caller      put 0   put 1        ...      prefetch 1   get 1 (waits)   prefetch 0   get 0
 *                   \       \                        \      /                     \      /
 *     thread        write 0  write 1                  read 1                       read 0
 *
 * The store is one file without a name, in a directory that the user chooses: nothing is left of it when the program
 * ends, however it ends. The caller plans the file: the offset and size of each block. Slots of blocks that are never
 * stored at the same time may overlap: jobs run strictly in the order of the calls, and an overwritten block is
 * detected.
 *
 * The 64-bit hash of every block is in memory, not in the file, and is checked when the block is read: `get` returns
 * exactly the bytes of `put`, or an error.
 *
 * Failures happen in the thread, and the calls return them. After the first failure all calls return REMAT_IO (with
 * directory, block and offset on the context) until disk_store_reset. Jobs that are still in the queue are skipped.
 *
 * All memory comes from the context at creation, except the thread's stack of 256 KiB. The page cache of the file
 * belongs to the kernel, which drops it when memory is short. One caller thread at a time. */
#ifndef REMAT_STORE_DISK_STORE_H
#define REMAT_STORE_DISK_STORE_H

#include <sys/types.h>

#include <remat/store.h>

typedef struct disk_store disk_store;

/* The place of a block in the file, and its largest size. */
typedef struct disk_slot {
    uint64_t offset, bytes;
} disk_slot;

/* The system calls of the store; tests replace them to inject faults. All return -1 and set errno on failure. `open`
 * makes a file without a name in `directory`. `reserve` allocates disk space for `bytes` bytes. The background thread
 * calls `write` and `read`, the caller's thread the others. */
typedef struct disk_io {
    int (*open)(void *user, const char *directory);
    int (*reserve)(void *user, int file, uint64_t bytes);
    ssize_t (*write)(void *user, int file, const void *from, size_t bytes, uint64_t offset);
    ssize_t (*read)(void *user, int file, void *to, size_t bytes, uint64_t offset);
    int (*close)(void *user, int file);
    void *user;
} disk_io;
/* The real system calls; `user` is NULL. */
disk_io disk_io_system(void);

typedef struct disk_store_options {
    const char *directory;  /* must exist; copied */
    const disk_slot *slots; /* of blocks 0..slot_count-1; copied */
    size_t slot_count;
    size_t queue_length; /* jobs in the queue at most; 0: 16. A call waits while the queue is full. */
    const disk_io *io;   /* NULL: the system's; copied */
} disk_store_options;

/* Opens the file, reserves disk space for all slots and starts the thread. REMAT_IO (also for a full disk),
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status disk_store_create(remat_context *context, const disk_store_options *options, disk_store **store);
/* Waits for the running job, if any, skips the others, and releases everything. NULL is fine. */
void disk_store_destroy(disk_store *store);

/* Writes `bytes` bytes as `block` in the background. `source` must not change until disk_store_wait(block) returns or a
 * later job has ended. Putting a block a second time replaces it. REMAT_INVALID: there are more bytes than the slot
 * holds. */
remat_status disk_store_put(disk_store *store, size_t block, const void *source, uint64_t bytes);

/* Begins to read `block` into `target`, which belongs to the store until disk_store_get or disk_store_wait. `bytes`
 * must be the size that was put. REMAT_INVALID: the block was never put. */
remat_status disk_store_prefetch(disk_store *store, size_t block, void *target, uint64_t bytes);

/* Reads `block` into `target`: waits for the prefetch into the same target, or reads now if there was none. On failure
 * the contents of `target` are undefined. */
remat_status disk_store_get(disk_store *store, size_t block, void *target, uint64_t bytes);

/* Waits until the last job on `block` (write or read) has ended. Then its buffer belongs to the caller again, even on
 * failure. Jobs run in order, so all earlier jobs have ended too. */
remat_status disk_store_wait(disk_store *store, size_t block);
/* Whether that job has ended; never waits. */
bool disk_store_idle(disk_store *store, size_t block);
/* Waits for everything. */
remat_status disk_store_drain(disk_store *store);

/* Waits for the running job, skips the others, and forgets all blocks, failures and counters. The same file can then be
 * used for another run. */
void disk_store_reset(disk_store *store);

/* What happened since creation or reset; only the fields about the disk are set. */
void disk_store_count(disk_store *store, remat_store_counters *counters);

#endif
