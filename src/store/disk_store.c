#include "store/disk_worker.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

#include <remat/units.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#define DEFAULT_QUEUE 16
#define STACK_BYTES   ((size_t)256 << 10)

static remat_place in_directory(const char *directory)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = directory;
    return place;
}

/* ---- making and unmaking ---- */

static remat_status check_options(remat_context *context, const disk_store_options *options, uint64_t *file_bytes)
{
    if (!options->directory || !*options->directory)
        return remat_fail(context, REMAT_INVALID, NULL, "the disk store needs the name of a directory");
    for (size_t i = 0; i < options->slot_count; i++) {
        uint64_t end = options->slots[i].offset;
        if (end >= REMAT_LIMIT || !remat_add(&end, options->slots[i].bytes))
            return remat_fail(context, REMAT_INVALID, NULL, "block %zu would end past 2^63 bytes", i);
        *file_bytes = end > *file_bytes ? end : *file_bytes;
    }
    return REMAT_OK;
}

static remat_status allocate_parts(disk_store *store, const disk_store_options *options)
{
    remat_context *context = store->context;
    store->directory = remat_text_copy(context, options->directory);
    store->blocks = remat_alloc_zeroed(context, store->block_count, sizeof *store->blocks);
    store->hashes = remat_alloc_zeroed(context, store->block_count, sizeof *store->hashes);
    store->jobs = remat_alloc_zeroed(context, store->capacity, sizeof *store->jobs);
    if (!store->directory || !store->blocks || !store->hashes || !store->jobs)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < store->block_count; i++)
        store->blocks[i].slot = options->slots[i];
    return REMAT_OK;
}

static remat_status open_file(disk_store *store, uint64_t bytes)
{
    remat_place place = in_directory(store->directory);
    store->file = store->io.open(store->io.user, store->directory);
    if (store->file < 0)
        return remat_fail(store->context, REMAT_IO, &place, "no file can be made in this directory: %s",
                          strerror(errno));
    if (store->io.reserve(store->io.user, store->file, bytes) == 0)
        return REMAT_OK;
    int error = errno;
    char size[REMAT_SIZE_TEXT];
    return remat_fail(store->context, REMAT_IO, &place, "there is no room for %s in this directory: %s",
                      remat_size_print(bytes, size), strerror(error));
}

static remat_status make_locks(disk_store *store)
{
    if (pthread_mutex_init(&store->mutex, NULL) != 0)
        goto failed;
    if (pthread_cond_init(&store->work, NULL) != 0)
        goto no_work;
    if (pthread_cond_init(&store->progress, NULL) != 0)
        goto no_progress;
    store->has_locks = true;
    return REMAT_OK;
no_progress:
    pthread_cond_destroy(&store->work);
no_work:
    pthread_mutex_destroy(&store->mutex);
failed:
    return remat_fail(store->context, REMAT_NO_MEMORY, NULL, "the system gives no lock");
}

/* Signals are for the program's own threads: the new thread blocks them all, and so does not die of a file size limit
 * either. */
static remat_status start_thread(disk_store *store)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&store->thread, &attributes, disk_worker_run, store);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    store->has_thread = error == 0;
    return error == 0 ? REMAT_OK
                      : remat_fail(store->context, REMAT_NO_MEMORY, NULL,
                                   "the thread for the disk could not be started: %s", strerror(error));
}

remat_status disk_store_create(remat_context *context, const disk_store_options *options, disk_store **store)
{
    *store = NULL;
    uint64_t file_bytes = 0;
    REMAT_TRY(check_options(context, options, &file_bytes));
    disk_store *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->io = options->io ? *options->io : disk_io_system();
    made->file = -1;
    made->block_count = options->slot_count;
    made->capacity = options->queue_length ? options->queue_length : DEFAULT_QUEUE;
    remat_status status = allocate_parts(made, options);
    if (status == REMAT_OK)
        status = open_file(made, file_bytes);
    if (status == REMAT_OK)
        status = make_locks(made);
    if (status == REMAT_OK)
        status = start_thread(made);
    if (status == REMAT_OK)
        *store = made;
    else
        disk_store_destroy(made);
    return status;
}

void disk_store_destroy(disk_store *store)
{
    if (!store)
        return;
    if (store->has_thread) {
        pthread_mutex_lock(&store->mutex);
        store->stop = true;
        pthread_cond_signal(&store->work);
        pthread_mutex_unlock(&store->mutex);
        pthread_join(store->thread, NULL);
    }
    if (store->has_locks) {
        pthread_cond_destroy(&store->progress);
        pthread_cond_destroy(&store->work);
        pthread_mutex_destroy(&store->mutex);
    }
    if (store->file >= 0)
        store->io.close(store->io.user, store->file); /* nobody wants the file any more, so nothing can be lost */
    remat_context *context = store->context;
    remat_release(context, store->jobs, store->capacity, sizeof *store->jobs);
    remat_release(context, store->hashes, store->block_count, sizeof *store->hashes);
    remat_release(context, store->blocks, store->block_count, sizeof *store->blocks);
    remat_text_release(context, store->directory);
    remat_release(context, store, 1, sizeof *store);
}

/* ---- with the lock held ---- */

static remat_status report(disk_store *store)
{
    const disk_failure *failure = &store->failure;
    if (!failure->fault)
        return REMAT_OK;
    remat_place place = in_directory(store->directory);
    const char *what = failure->fault == DISK_WRITE_FAILED  ? "writing failed"
                       : failure->fault == DISK_READ_FAILED ? "reading failed"
                       : failure->fault == DISK_TRUNCATED
                           ? "the file was cut off underneath"
                           : "what was read is not what was written: the file was changed underneath, or the disk or "
                             "the memory is faulty";
    return remat_fail(store->context, REMAT_IO, &place, "block %zu of %llu bytes, at offset %llu of the file: %s%s%s",
                      failure->block, (unsigned long long)failure->bytes, (unsigned long long)failure->offset, what,
                      failure->error ? ": " : "", failure->error ? strerror(failure->error) : "");
}

static void wait_for(disk_store *store, uint64_t ticket)
{
    if (store->done >= ticket)
        return;
    uint64_t began = disk_clock_ns();
    while (store->done < ticket)
        pthread_cond_wait(&store->progress, &store->mutex);
    store->last_use_ns = disk_clock_ns();
    store->counters.wait_ns += store->last_use_ns - began;
}

/* Puts a job at the end of the queue, where there is room or once there is. */
static remat_status enqueue(disk_store *store, const disk_job *job)
{
    store->last_use_ns = disk_clock_ns();
    if (store->first_use_ns == 0)
        store->first_use_ns = store->last_use_ns;
    if (store->asked >= store->capacity)
        wait_for(store, store->asked - store->capacity + 1);
    REMAT_TRY(report(store));
    store->jobs[store->asked % store->capacity] = *job;
    store->blocks[job->block].ticket = ++store->asked;
    pthread_cond_signal(&store->work);
    return REMAT_OK;
}

/* ---- the calls ---- */

static remat_status check_block(const disk_store *store, size_t block)
{
    if (block < store->block_count)
        return REMAT_OK;
    return remat_fail(store->context, REMAT_INVALID, NULL, "there is no block %zu: the disk store has %zu", block,
                      store->block_count);
}

remat_status disk_store_put(disk_store *store, size_t block, const void *source, uint64_t bytes)
{
    REMAT_TRY(check_block(store, block));
    disk_block *known = &store->blocks[block];
    if (bytes > known->slot.bytes)
        return remat_fail(store->context, REMAT_INVALID, NULL, "block %zu has room for %llu bytes, not for %llu", block,
                          (unsigned long long)known->slot.bytes, (unsigned long long)bytes);
    disk_job job = {.write = true, .block = block, .offset = known->slot.offset, .bytes = bytes, .source = source};
    pthread_mutex_lock(&store->mutex);
    remat_status status = enqueue(store, &job);
    pthread_mutex_unlock(&store->mutex);
    if (status == REMAT_OK) {
        known->stored = true;
        known->bytes = bytes;
        known->target = NULL; /* a prefetch of what was there before is no longer the block */
    }
    return status;
}

static remat_status check_read(const disk_store *store, size_t block, uint64_t bytes)
{
    REMAT_TRY(check_block(store, block));
    const disk_block *known = &store->blocks[block];
    if (!known->stored)
        return remat_fail(store->context, REMAT_INVALID, NULL, "block %zu was never written", block);
    if (bytes != known->bytes)
        return remat_fail(store->context, REMAT_INVALID, NULL, "block %zu was written with %llu bytes, not %llu", block,
                          (unsigned long long)known->bytes, (unsigned long long)bytes);
    return REMAT_OK;
}

remat_status disk_store_prefetch(disk_store *store, size_t block, void *target, uint64_t bytes)
{
    REMAT_TRY(check_read(store, block, bytes));
    disk_block *known = &store->blocks[block];
    disk_job job = {.block = block, .offset = known->slot.offset, .bytes = bytes, .target = target};
    pthread_mutex_lock(&store->mutex);
    remat_status status = enqueue(store, &job);
    pthread_mutex_unlock(&store->mutex);
    if (status == REMAT_OK)
        known->target = target;
    return status;
}

remat_status disk_store_get(disk_store *store, size_t block, void *target, uint64_t bytes)
{
    REMAT_TRY(check_read(store, block, bytes));
    disk_block *known = &store->blocks[block];
    if (!known->target || known->target != target)
        REMAT_TRY(disk_store_prefetch(store, block, target, bytes));
    known->target = NULL;
    return disk_store_wait(store, block);
}

remat_status disk_store_wait(disk_store *store, size_t block)
{
    REMAT_TRY(check_block(store, block));
    pthread_mutex_lock(&store->mutex);
    wait_for(store, store->blocks[block].ticket);
    remat_status status = report(store);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

bool disk_store_idle(disk_store *store, size_t block)
{
    pthread_mutex_lock(&store->mutex);
    bool idle = block >= store->block_count || store->done >= store->blocks[block].ticket;
    pthread_mutex_unlock(&store->mutex);
    return idle;
}

remat_status disk_store_drain(disk_store *store)
{
    pthread_mutex_lock(&store->mutex);
    wait_for(store, store->asked);
    remat_status status = report(store);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

void disk_store_reset(disk_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->abandon = true;
    wait_for(store, store->asked);
    store->abandon = false;
    store->asked = store->done = 0;
    store->failure = (disk_failure){0};
    store->counters = (remat_store_counters){0};
    store->first_use_ns = store->last_use_ns = 0;
    for (size_t i = 0; i < store->block_count; i++)
        store->blocks[i] = (disk_block){.slot = store->blocks[i].slot};
    pthread_mutex_unlock(&store->mutex);
}

void disk_store_count(disk_store *store, remat_store_counters *counters)
{
    pthread_mutex_lock(&store->mutex);
    *counters = store->counters;
    counters->elapsed_ns = store->last_use_ns - store->first_use_ns;
    counters->kept_up = counters->wait_ns <= (counters->elapsed_ns - counters->wait_ns) / 10;
    pthread_mutex_unlock(&store->mutex);
}
