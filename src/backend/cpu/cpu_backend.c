/* The processor: memory of the host, and a queue that runs a call before it returns. */
#include "backend/cpu/cpu_backend.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct cpu_queue {
    backend_queue base;
    kernel_run run;
    size_t scratch_bytes;
} cpu_queue;

extern const backend_type backend_cpu;

struct backend_event {
    uint64_t nanoseconds;
};

/* ---- opening ---- */

enum { MOST_THREADS = 1024 };

static remat_status choose_kernels(remat_context *context, const char *name, const kernel_table **table)
{
    bool fast = !name || strcmp(name, "fast") == 0;
    *table = fast ? kernels_fast() : strcmp(name, "reference") == 0 ? kernels_reference() : NULL;
    char sets[64] = "";
    for (const kernel_table *const *set = kernels_available(); *set && !*table; set++) {
        if (strcmp(name, (*set)->name) == 0)
            *table = *set;
        size_t length = strlen(sets);
        snprintf(sets + length, sizeof sets - length, ", %s", (*set)->name);
    }
    if (*table)
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, NULL,
                      "there are no kernels '%.40s' for this processor; there are fast%s and reference", name, sets);
}

remat_status cpu_backend_init(remat_context *context, const backend_options *options, cpu_backend *made)
{
    REMAT_TRY(choose_kernels(context, options->kernels, &made->table));
    if (options->threads > MOST_THREADS)
        return remat_fail(context, REMAT_INVALID, NULL, "%u threads are more than %d", options->threads, MOST_THREADS);
    made->base.context = context;
    made->base.kernels = made->table->name;
    made->base.threads = options->threads ? options->threads : (unsigned)parallel_default_threads();
    made->base.small_half_heads = true;
    made->base.rounds_once = made->table->multiplies_halves;
    made->base.scratch_bytes = (uint64_t)made->base.threads * made->table->scratch_bytes;
    return REMAT_OK;
}

static remat_status open(remat_context *context, const backend_options *options, backend **made)
{
    cpu_backend *cpu = remat_alloc_zeroed(context, 1, sizeof *cpu);
    if (!cpu)
        return REMAT_NO_MEMORY;
    remat_status status = cpu_backend_init(context, options, cpu);
    if (status != REMAT_OK) {
        remat_release(context, cpu, 1, sizeof *cpu);
        return status;
    }
    cpu->base.type = &backend_cpu;
    cpu->base.host_visible = true;
    *made = &cpu->base;
    return REMAT_OK;
}

static void close(backend *owner)
{
    remat_release(owner->context, owner, 1, sizeof(cpu_backend));
}

/* ---- memory ---- */

/* Large areas are asked for in large pages: fewer faults at the start, fewer misses in every step. Only whole large pages
 * inside the area, so that no memory outside of it is touched; a system that does not know the wish ignores it. */
static void wish_for_large_pages(char *memory, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1), end = ((uintptr_t)memory + bytes) & ~(page - 1);
    if (end > first)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
}

remat_status cpu_backend_allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory)
{
    (void)kind; /* the host's memory is the device's */
    memory->at = remat_alloc_aligned(owner->context, bytes, 64);
    if (!memory->at)
        return REMAT_NO_MEMORY;
    memory->bytes = bytes;
    wish_for_large_pages(memory->at, bytes);
    if (zeroed && !remat_alloc_comes_zeroed(owner->context, bytes))
        memset(memory->at, 0, bytes);
    return REMAT_OK;
}

void cpu_backend_release(backend *owner, backend_memory *memory)
{
    remat_release(owner->context, memory->at, memory->bytes, 1);
}

/* ---- kernels ---- */

backend_kernel cpu_backend_find_kernel(const backend *owner, operation op, const char *types)
{
    return kernel_find(((const cpu_backend *)owner)->table, op, types);
}

uint64_t cpu_backend_workspace(const backend *owner, operation op, const void *args)
{
    (void)owner;
    return kernel_workspace(op, args);
}

/* ---- queues ---- */

static remat_status queue_create(backend *owner, backend_queue **made)
{
    cpu_queue *queue = remat_alloc_zeroed(owner->context, 1, sizeof *queue);
    if (!queue)
        return REMAT_NO_MEMORY;
    queue->base.owner = owner;
    queue->run.threads = (int)owner->threads;
    queue->scratch_bytes = owner->scratch_bytes;
    if (queue->scratch_bytes && !(queue->run.scratch = remat_alloc_aligned(owner->context, queue->scratch_bytes, 64))) {
        remat_release(owner->context, queue, 1, sizeof *queue);
        return REMAT_NO_MEMORY;
    }
    *made = &queue->base;
    return REMAT_OK;
}

static void queue_destroy(backend_queue *base)
{
    cpu_queue *queue = (cpu_queue *)base;
    remat_context *context = base->owner->context;
    remat_release(context, queue->run.scratch, queue->scratch_bytes, 1);
    remat_release(context, queue, 1, sizeof *queue);
}

static remat_status run(backend_queue *base, const recording *calls, size_t first, size_t end)
{
    const cpu_queue *queue = (const cpu_queue *)base;
    for (size_t at = first; at < end;) {
        recorded_call *call = recording_call(calls, at);
        const kernel_row *kernel = call->kernel;
        if (kernel)
            kernel->run(&queue->run, recorded_args(call));
        at += call->bytes;
    }
    return REMAT_OK;
}

static remat_status copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes)
{
    (void)queue;
    if (to != host)
        memcpy(to, host, bytes);
    return REMAT_OK;
}

static remat_status copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes)
{
    return copy_in(queue, host, from, bytes);
}

static remat_status wait(backend_queue *queue)
{
    (void)queue;
    return REMAT_OK;
}

/* ---- events ---- */

uint64_t cpu_backend_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static remat_status event_create(backend *owner, backend_event **made)
{
    *made = remat_alloc_zeroed(owner->context, 1, sizeof **made);
    return *made ? REMAT_OK : REMAT_NO_MEMORY;
}

static void event_destroy(backend *owner, backend_event *event)
{
    remat_release(owner->context, event, 1, sizeof *event);
}

static remat_status event_record(backend_queue *queue, backend_event *event)
{
    (void)queue;
    event->nanoseconds = cpu_backend_clock();
    return REMAT_OK;
}

static remat_status event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds)
{
    (void)owner;
    *nanoseconds = event->nanoseconds;
    return REMAT_OK;
}

const backend_type backend_cpu = {
    .name = "cpu",
    .open = open,
    .close = close,
    .allocate = cpu_backend_allocate,
    .release = cpu_backend_release,
    .find_kernel = cpu_backend_find_kernel,
    .workspace = cpu_backend_workspace,
    .measure_limits = cpu_backend_measure_limits,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .run = run,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_in,
    .wait = wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
};
