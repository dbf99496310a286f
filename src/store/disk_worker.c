#include "store/disk_worker.h"

#include "base/hash.h"

#include <errno.h>
#include <time.h>

/* Hashed and written piece by piece, so that a piece is still in the cache when its second use comes. */
#define PIECE_BYTES ((uint64_t)1 << 20)

uint64_t disk_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static disk_failure failed_at(const disk_job *job, disk_fault fault, int error, uint64_t offset)
{
    return (disk_failure){fault, error, job->block, offset, job->bytes};
}

/* The system may write less than it was asked to, which is no failure while it goes on. */
static disk_failure write_piece(const disk_store *store, const disk_job *job, const char *from, uint64_t bytes,
                                uint64_t offset)
{
    while (bytes) {
        ssize_t wrote = store->io.write(store->io.user, store->file, from, (size_t)bytes, offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0 || (uint64_t)wrote > bytes)
            return failed_at(job, DISK_WRITE_FAILED, wrote < 0 ? errno : EIO, offset);
        from += wrote;
        bytes -= (uint64_t)wrote;
        offset += (uint64_t)wrote;
    }
    return (disk_failure){0};
}

static disk_failure read_piece(const disk_store *store, const disk_job *job, char *to, uint64_t bytes, uint64_t offset)
{
    while (bytes) {
        ssize_t got = store->io.read(store->io.user, store->file, to, (size_t)bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return failed_at(job, DISK_TRUNCATED, 0, offset);
        if (got < 0 || (uint64_t)got > bytes)
            return failed_at(job, DISK_READ_FAILED, got < 0 ? errno : EIO, offset);
        to += got;
        bytes -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return (disk_failure){0};
}

/* The hash of each piece begins with that of the one before. */
static disk_failure run_write(disk_store *store, const disk_job *job)
{
    const char *source = job->source;
    uint64_t hash = 0;
    for (uint64_t at = 0; at < job->bytes; at += PIECE_BYTES) {
        uint64_t bytes = job->bytes - at < PIECE_BYTES ? job->bytes - at : PIECE_BYTES;
        hash = XXH3_64bits_withSeed(source + at, (size_t)bytes, hash);
        disk_failure failure = write_piece(store, job, source + at, bytes, job->offset + at);
        if (failure.fault)
            return failure;
    }
    store->hashes[job->block] = hash;
    return (disk_failure){0};
}

static disk_failure run_read(disk_store *store, const disk_job *job)
{
    char *target = job->target;
    uint64_t hash = 0;
    for (uint64_t at = 0; at < job->bytes; at += PIECE_BYTES) {
        uint64_t bytes = job->bytes - at < PIECE_BYTES ? job->bytes - at : PIECE_BYTES;
        disk_failure failure = read_piece(store, job, target + at, bytes, job->offset + at);
        if (failure.fault)
            return failure;
        hash = XXH3_64bits_withSeed(target + at, (size_t)bytes, hash);
    }
    return hash == store->hashes[job->block] ? (disk_failure){0} : failed_at(job, DISK_CHANGED, 0, job->offset);
}

static void count_job(remat_store_counters *counters, const disk_job *job)
{
    if (job->write) {
        counters->blocks_written++;
        counters->bytes_written += job->bytes;
    } else {
        counters->blocks_read++;
        counters->bytes_read += job->bytes;
    }
}

void *disk_worker_run(void *argument)
{
    disk_store *store = argument;
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        while (!store->stop && store->done == store->asked)
            pthread_cond_wait(&store->work, &store->mutex);
        if (store->stop)
            break;
        if (!store->abandon && !store->failure.fault) {
            disk_job job = store->jobs[store->done % store->capacity];
            pthread_mutex_unlock(&store->mutex);
            uint64_t began = disk_clock_ns();
            disk_failure failure = job.write ? run_write(store, &job) : run_read(store, &job);
            uint64_t took = disk_clock_ns() - began;
            pthread_mutex_lock(&store->mutex);
            store->counters.io_ns += took;
            store->failure = failure;
            if (!failure.fault)
                count_job(&store->counters, &job);
        }
        store->done++;
        pthread_cond_signal(&store->progress);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}
