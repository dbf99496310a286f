/* A backend for tests. It behaves like a device on a machine without one. The kernels are those of the CPU, but
 *
 *   - every queue is a thread of its own, which starts each task late on purpose, so that a host that does not wait reads
 *     results that are not there yet;
 *   - its memory is mapped twice. The address that callers get can neither be read nor written: an access by the
 *     host crashes at once. Only the queue's thread knows the other address.
 *
 *     memory file   | 64-byte aligned bytes of one allocation |
 *     closed        ^ at, handed out                  open    ^ for kernels and copies
 */
#include "support/fenced_backend.h"

#include "backend/cpu/cpu_backend.h"

#include "base/alloc.h"
#include "base/error.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

extern const backend_type backend_fenced;

typedef struct mapping {
    char *closed, *open;
    uint64_t bytes;
    struct mapping *next;
} mapping;

typedef struct fenced_backend {
    cpu_backend cpu;
    pthread_mutex_t lock; /* of the list */
    mapping *mappings;
} fenced_backend;

struct backend_event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool happened;
    uint64_t nanoseconds;
};

/* ---- opening ---- */

static void add_lanes(backend *owner);

static remat_status open_fenced(remat_context *context, const backend_options *options, backend **made)
{
    fenced_backend *fenced = remat_alloc_zeroed(context, 1, sizeof *fenced);
    if (!fenced)
        return REMAT_NO_MEMORY;
    remat_status status = cpu_backend_init(context, options, &fenced->cpu);
    if (status != REMAT_OK) {
        remat_release(context, fenced, 1, sizeof *fenced);
        return status;
    }
    pthread_mutex_init(&fenced->lock, NULL);
    fenced->cpu.base.type = &backend_fenced;
    fenced->cpu.base.joins = ACTIVATION_GELU_TANH; /* with the bits of two operations, as every test on it checks */
    add_lanes(&fenced->cpu.base);
    *made = &fenced->cpu.base;
    return REMAT_OK;
}

static void close_fenced(backend *owner)
{
    fenced_backend *fenced = (fenced_backend *)owner;
    pthread_mutex_destroy(&fenced->lock);
    remat_release(owner->context, fenced, 1, sizeof *fenced);
}

/* ---- memory ---- */

static bool map_twice(mapping *map, uint64_t bytes)
{
    int file = memfd_create("remat-fenced", MFD_CLOEXEC);
    map->bytes = bytes;
    map->open = map->closed = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0) {
        map->open = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        map->closed = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0);
    }
    if (file >= 0)
        close(file);
    return map->open != MAP_FAILED && map->closed != MAP_FAILED;
}

static void unmap(const mapping *map)
{
    if (map->open != MAP_FAILED)
        munmap(map->open, map->bytes);
    if (map->closed != MAP_FAILED)
        munmap(map->closed, map->bytes);
}

/* The pages of a new file are zero. */
static remat_status allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory)
{
    if (kind == MEMORY_STAGING)
        return cpu_backend_allocate(owner, kind, bytes, zeroed, memory);
    fenced_backend *fenced = (fenced_backend *)owner;
    mapping *map = remat_alloc_zeroed(owner->context, 1, sizeof *map);
    if (!map)
        return REMAT_NO_MEMORY;
    if (!map_twice(map, bytes)) {
        unmap(map);
        remat_release(owner->context, map, 1, sizeof *map);
        return remat_fail(owner->context, REMAT_NO_MEMORY, NULL, "no memory for %llu bytes of the fenced device",
                          (unsigned long long)bytes);
    }
    pthread_mutex_lock(&fenced->lock);
    map->next = fenced->mappings;
    fenced->mappings = map;
    pthread_mutex_unlock(&fenced->lock);
    *memory = (backend_memory){map->closed, bytes, kind};
    return REMAT_OK;
}

static void release(backend *owner, backend_memory *memory)
{
    if (memory->kind == MEMORY_STAGING) {
        cpu_backend_release(owner, memory);
        return;
    }
    fenced_backend *fenced = (fenced_backend *)owner;
    pthread_mutex_lock(&fenced->lock);
    mapping **link = &fenced->mappings;
    while ((*link)->closed != memory->at)
        link = &(*link)->next;
    mapping *map = *link;
    *link = map->next;
    pthread_mutex_unlock(&fenced->lock);
    unmap(map);
    remat_release(owner->context, map, 1, sizeof *map);
}

/* The address behind the fence. */
static void *inside(fenced_backend *fenced, const void *at)
{
    void *found = NULL;
    pthread_mutex_lock(&fenced->lock);
    for (const mapping *map = fenced->mappings; map && !found; map = map->next)
        if ((const char *)at >= map->closed && (const char *)at < map->closed + map->bytes)
            found = map->open + ((const char *)at - map->closed);
    pthread_mutex_unlock(&fenced->lock);
    return found;
}

/* ---- queues ---- */

typedef struct task {
    enum { RUN, COPY_IN, COPY_OUT, COPY_WITHIN, RECORD_EVENT, FOLLOW, CALL, LEAVE } kind;
    const recording *calls; /* of RUN */
    size_t first, end;
    void *to; /* of copies */
    const void *from;
    uint64_t bytes;
    backend_event *event;
    void (*call)(void *argument); /* of CALL, with `to` */
} task;

enum { MOST_TASKS = 1024 };

typedef struct fenced_queue {
    backend_queue base;
    kernel_run run;
    size_t scratch_bytes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task tasks[MOST_TASKS]; /* a ring: given - done of them wait or run */
    uint64_t given, done;
} fenced_queue;

static void run_calls(const fenced_queue *queue, const task *work)
{
    fenced_backend *fenced = (fenced_backend *)queue->base.owner;
    for (size_t at = work->first; at < work->end;) {
        recorded_call *call = recording_call(work->calls, at);
        const kernel_row *kernel = call->kernel;
        union {
            tensor_ref tensors[OPERATION_MAX_TENSORS];
            char bytes[512];
        } args;
        if (kernel) {
            memcpy(&args, recorded_args(call), operation_table[call->op].bytes);
            for (uint32_t i = 0; i < operation_table[call->op].tensors; i++)
                if (args.tensors[i].at)
                    args.tensors[i].at = inside(fenced, args.tensors[i].at);
            kernel->run(&queue->run, &args);
        }
        at += call->bytes;
    }
}

static void happen(backend_event *event)
{
    pthread_mutex_lock(&event->lock);
    event->nanoseconds = cpu_backend_clock();
    event->happened = true;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

static uint64_t await(backend_event *event)
{
    pthread_mutex_lock(&event->lock);
    while (!event->happened)
        pthread_cond_wait(&event->changed, &event->lock);
    const uint64_t nanoseconds = event->nanoseconds;
    pthread_mutex_unlock(&event->lock);
    return nanoseconds;
}

static void perform(const fenced_queue *queue, const task *work)
{
    fenced_backend *fenced = (fenced_backend *)queue->base.owner;
    static const struct timespec late = {0, 20000};
    nanosleep(&late, NULL);
    switch (work->kind) {
    case RUN: run_calls(queue, work); break;
    case COPY_IN: memcpy(inside(fenced, work->to), work->from, work->bytes); break;
    case COPY_OUT: memcpy(work->to, inside(fenced, work->from), work->bytes); break;
    case COPY_WITHIN: memcpy(inside(fenced, work->to), inside(fenced, work->from), work->bytes); break;
    case RECORD_EVENT: happen(work->event); break;
    case FOLLOW: await(work->event); break;
    case CALL: work->call(work->to); break;
    case LEAVE: break;
    }
}

static void *work(void *argument)
{
    fenced_queue *queue = argument;
    for (bool leaves = false; !leaves;) {
        pthread_mutex_lock(&queue->lock);
        while (queue->done == queue->given)
            pthread_cond_wait(&queue->changed, &queue->lock);
        const task next = queue->tasks[queue->done % MOST_TASKS];
        pthread_mutex_unlock(&queue->lock);
        perform(queue, &next);
        leaves = next.kind == LEAVE;
        pthread_mutex_lock(&queue->lock);
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
    }
    return NULL;
}

static void give(fenced_queue *queue, task next)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->given - queue->done == MOST_TASKS)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->tasks[queue->given++ % MOST_TASKS] = next;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void queue_release(fenced_queue *queue)
{
    remat_context *context = queue->base.owner->context;
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
    remat_release(context, queue->run.scratch, queue->scratch_bytes, 1);
    remat_release(context, queue, 1, sizeof *queue);
}

static remat_status queue_create(backend *owner, backend_queue **made)
{
    fenced_queue *queue = remat_alloc_zeroed(owner->context, 1, sizeof *queue);
    if (!queue)
        return REMAT_NO_MEMORY;
    queue->base.owner = owner;
    queue->run.threads = (int)owner->threads;
    queue->scratch_bytes = owner->scratch_bytes;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (queue->scratch_bytes && !(queue->run.scratch = remat_alloc_aligned(owner->context, queue->scratch_bytes, 64))) {
        queue_release(queue);
        return REMAT_NO_MEMORY;
    }
    if (pthread_create(&queue->thread, NULL, work, queue) != 0) {
        queue_release(queue);
        return remat_fail(owner->context, REMAT_NO_MEMORY, NULL, "no thread for a queue of the fenced device");
    }
    *made = &queue->base;
    return REMAT_OK;
}

static void queue_destroy(backend_queue *base)
{
    fenced_queue *queue = (fenced_queue *)base;
    give(queue, (task){.kind = LEAVE});
    pthread_join(queue->thread, NULL);
    queue_release(queue);
}

static remat_status run(backend_queue *queue, const recording *calls, size_t first, size_t end)
{
    give((fenced_queue *)queue, (task){.kind = RUN, .calls = calls, .first = first, .end = end});
    return REMAT_OK;
}

static remat_status copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes)
{
    give((fenced_queue *)queue, (task){.kind = COPY_IN, .to = to, .from = host, .bytes = bytes});
    return REMAT_OK;
}

static remat_status copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes)
{
    give((fenced_queue *)queue, (task){.kind = COPY_OUT, .to = host, .from = from, .bytes = bytes});
    return REMAT_OK;
}

static remat_status copy_within(backend_queue *queue, void *to, const void *from, uint64_t bytes)
{
    give((fenced_queue *)queue, (task){.kind = COPY_WITHIN, .to = to, .from = from, .bytes = bytes});
    return REMAT_OK;
}

static remat_status wait(backend_queue *base)
{
    fenced_queue *queue = (fenced_queue *)base;
    pthread_mutex_lock(&queue->lock);
    while (queue->done != queue->given)
        pthread_cond_wait(&queue->changed, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
    return REMAT_OK;
}

/* ---- events ---- */

static remat_status event_create(backend *owner, backend_event **made)
{
    backend_event *event = *made = remat_alloc_zeroed(owner->context, 1, sizeof *event);
    if (!event)
        return REMAT_NO_MEMORY;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    return REMAT_OK;
}

static void event_destroy(backend *owner, backend_event *event)
{
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    remat_release(owner->context, event, 1, sizeof *event);
}

static remat_status event_record(backend_queue *queue, backend_event *event)
{
    pthread_mutex_lock(&event->lock);
    event->happened = false;
    pthread_mutex_unlock(&event->lock);
    give((fenced_queue *)queue, (task){.kind = RECORD_EVENT, .event = event});
    return REMAT_OK;
}

static remat_status event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds)
{
    (void)owner;
    *nanoseconds = await(event);
    return REMAT_OK;
}

/* ---- lanes, for the NCCL of the tests ---- */

static void *stream(backend_queue *lane)
{
    return lane;
}

/* A mark is an event whose time nobody asks for. */
struct backend_mark {
    backend_event *event;
};

static remat_status mark_create(backend *owner, backend_mark **made)
{
    *made = remat_alloc_zeroed(owner->context, 1, sizeof **made);
    return *made ? event_create(owner, &(*made)->event) : REMAT_NO_MEMORY;
}

static void mark_destroy(backend *owner, backend_mark *mark)
{
    if (mark->event)
        event_destroy(owner, mark->event);
    remat_release(owner->context, mark, 1, sizeof *mark);
}

static remat_status mark_set(backend_queue *queue, backend_mark *mark)
{
    return event_record(queue, mark->event);
}

static remat_status mark_follow(backend_queue *queue, backend_mark *mark)
{
    give((fenced_queue *)queue, (task){.kind = FOLLOW, .event = mark->event});
    return REMAT_OK;
}

static remat_status mark_test(backend *owner, backend_mark *mark, bool *reached)
{
    (void)owner;
    pthread_mutex_lock(&mark->event->lock);
    *reached = mark->event->happened;
    pthread_mutex_unlock(&mark->event->lock);
    return REMAT_OK;
}

static const backend_lanes lanes = {.create = queue_create,
                                    .stream = stream,
                                    .mark_create = mark_create,
                                    .mark_destroy = mark_destroy,
                                    .mark_set = mark_set,
                                    .mark_follow = mark_follow,
                                    .mark_test = mark_test};

void fenced_stream_call(void *lane, void (*call)(void *argument), void *argument)
{
    give(lane, (task){.kind = CALL, .call = call, .to = argument});
}

void *fenced_stream_address(void *lane, const void *at)
{
    return inside((fenced_backend *)((fenced_queue *)lane)->base.owner, at);
}

static bool has_lanes;
static uint64_t chosen_identity;

void fenced_use_lanes(uint64_t identity)
{
    has_lanes = true;
    chosen_identity = identity;
}

static void add_lanes(backend *owner)
{
    owner->lanes = has_lanes ? &lanes : NULL;
    memcpy(owner->identity, &chosen_identity, sizeof chosen_identity);
}

const backend_type backend_fenced = {
    .name = "fenced",
    .open = open_fenced,
    .close = close_fenced,
    .allocate = allocate,
    .release = release,
    .find_kernel = cpu_backend_find_kernel,
    .workspace = cpu_backend_workspace,
    .measure_limits = cpu_backend_measure_limits,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .run = run,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .wait = wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
};

const char *fenced_device(void)
{
    return backend_fenced.name;
}
