/* Devices that compute. A backend has memory, queues that run recorded operations in that memory, and a table of
 * kernels, found by operation and element types. Each backend has its folder, such as cpu/.
 * backend_table.c lists them. Only the backend itself accesses its memory.
 *
 *     backend *device;
 *     backend_open(context, &(backend_options){.device = "cpu"}, &device);
 *     backend_memory weights;
 *     backend_allocate(device, MEMORY_DEVICE, bytes, true, &weights);
 *     backend_queue *queue;
 *     backend_queue_create(device, &queue);
 *     backend_copy_in(queue, weights.at, host, bytes);
 *     backend_run(queue, &recording, 0, recording.used);
 *     backend_copy_out(queue, host, weights.at, bytes);
 *     backend_wait(queue);
 *
 * A queue runs its work in the order of the calls, but maybe later. Until backend_wait returns, the host memory of
 * copies and the recording must not change. backend_wait returns the failures of the work. */
#ifndef REMAT_BACKEND_BACKEND_H
#define REMAT_BACKEND_BACKEND_H

#include <remat/context.h>

#include "backend/operation.h"

typedef struct backend_type backend_type;
typedef struct recording recording;

typedef struct backend_options {
    const char *device;  /* "cpu" (also NULL), "cuda", "cuda:1"; in tests also "fenced" */
    const char *kernels; /* "fast" (also NULL), the name of an instruction set, "reference" */
    unsigned threads;    /* 0: as many as there are cores */
    /* Number of this one among the processes of a machine, which share its devices by turns: "cuda". */
    uint64_t process;
} backend_options;

typedef struct backend_lanes backend_lanes;

/* Backends put this first in a struct of their own. */
typedef struct backend {
    const backend_type *type;
    remat_context *context;
    const char *kernels; /* the name of the table in use */
    const char *about;   /* the device in words, with its memory and libraries; NULL: nothing beyond the kernels */
    unsigned threads;
    uint64_t scratch_bytes; /* that every queue allocates for its kernels */
    uint64_t free_bytes;    /* of the device's own memory when it was opened; 0: it computes in the host's */
    bool host_visible;      /* the host may access the backend's memory while no queue runs */
    bool half_products;     /* GEMMs with one operand in bf16 take both in bf16 */
    bool small_half_heads;  /* attention takes tensors in bf16 only as attention_takes_halves says */
    bool rounds_once;       /* GEMMs round a C in bf16 once, however long k is */
    /* It has GEMMs that multiply by the derivative of this activation before they round, so that their bits are not those of two
     * operations: the network joins the two in every plan. NONE: it has no such GEMMs. */
    activation_kind joins;
    uint64_t loss_rows;         /* so many rows of logits exist at a time; 0: as many as suit a processor's cache */
    const backend_lanes *lanes; /* for transfers by NCCL; NULL: it cannot access the backend's memory */
    char identity[16];          /* no other device in the world has it; for devices with lanes */
} backend;

/* DEVICE: kernels read and write it. STAGING: host memory for fast copies to and from the device. */
typedef enum memory_kind { MEMORY_DEVICE, MEMORY_STAGING } memory_kind;

typedef struct backend_memory {
    char *at; /* aligned to 64 bytes; NULL where bytes is 0 */
    uint64_t bytes;
    memory_kind kind;
} backend_memory;

typedef struct backend_queue {
    backend *owner;
} backend_queue;

/* A point in the work of a queue, with the time at which it was reached. */
typedef struct backend_event backend_event;

/* Only the backend knows what a kernel is. */
typedef const void *backend_kernel;

/* The limits of the device, to compare measured rates with. */
typedef struct backend_limits {
    double flops; /* floating point operations a second, in multiply-adds on registers */
    double bytes; /* a second through its memory */
    unsigned threads;
} backend_limits;

/* The functions of a backend. Call them through the functions below. */
struct backend_type {
    const char *name;
    remat_status (*open)(remat_context *context, const backend_options *options, backend **made);
    void (*close)(backend *owner);
    remat_status (*allocate)(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory);
    void (*release)(backend *owner, backend_memory *memory);
    backend_kernel (*find_kernel)(const backend *owner, operation op, const char *types);
    uint64_t (*workspace)(const backend *owner, operation op, const void *args);
    remat_status (*measure_limits)(backend *owner, backend_limits *limits);
    /* NULL in all three: the backend has nothing to choose. */
    void (*look_for_algorithms)(backend *owner, bool looks);
    remat_status (*algorithms)(backend *owner, char **text);
    remat_status (*use_algorithms)(backend *owner, const char *text);
    remat_status (*queue_create)(backend *owner, backend_queue **made);
    void (*queue_destroy)(backend_queue *queue);
    remat_status (*run)(backend_queue *queue, const recording *calls, size_t first, size_t end);
    remat_status (*copy_in)(backend_queue *queue, void *to, const void *host, uint64_t bytes);
    remat_status (*copy_out)(backend_queue *queue, void *host, const void *from, uint64_t bytes);
    remat_status (*copy_within)(backend_queue *queue, void *to, const void *from, uint64_t bytes);
    remat_status (*wait)(backend_queue *queue);
    remat_status (*event_create)(backend *owner, backend_event **made);
    void (*event_destroy)(backend *owner, backend_event *event);
    remat_status (*event_record)(backend_queue *queue, backend_event *event);
    remat_status (*event_wait)(backend *owner, backend_event *event, uint64_t *nanoseconds);
};

/* Queues for transfers by a library, beside those that compute. A lane is a queue that runs no recordings, and takes no scratch memory. A
 * mark is a point in the work of a queue, like an event, but without a time: nothing waits when it is set. */
typedef struct backend_mark backend_mark;
struct backend_lanes {
    remat_status (*create)(backend *owner, backend_queue **made);
    void *(*stream)(
        backend_queue *lane); /* what the library calls it; its device is the one that is chosen from then on */
    remat_status (*mark_create)(backend *owner, backend_mark **made);
    void (*mark_destroy)(backend *owner, backend_mark *mark);
    remat_status (*mark_set)(backend_queue *queue, backend_mark *mark);
    remat_status (*mark_follow)(backend_queue *queue,
                                backend_mark *mark); /* later work of the queue comes after the mark */
    remat_status (*mark_test)(backend *owner, backend_mark *mark, bool *reached);
};

/* ---- opening ---- */

/* REMAT_INVALID for a device or kernels that are not there; the message lists what there is. */
remat_status backend_open(remat_context *context, const backend_options *options, backend **made);
void backend_close(backend *owner); /* NULL is fine. Release its memory, queues and events first. */

/* ---- memory ---- */

/* For 0 bytes nothing is allocated, and `at` is NULL. `zeroed`: every byte is 0. REMAT_NO_MEMORY. */
remat_status backend_allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory);
void backend_release(backend *owner, backend_memory *memory);

/* ---- kernels ---- */

/* Finds the kernel for tensors of these types: one letter for each (dtype_traits.letter, or '-' if the tensor is
 * absent). NULL: none. */
backend_kernel backend_find_kernel(const backend *owner, operation op, const char *types);

/* The bytes of workspace that an operation of these sizes and types needs; addresses do not matter. */
uint64_t backend_workspace(const backend *owner, operation op, const void *args);

/* Measured in a fraction of a second. */
remat_status backend_measure_limits(backend *owner, backend_limits *limits);

/* Which of several algorithms a device uses changes time and bits. From look_for_algorithms(true) on, it times them when an operation of
 * a new size runs for the first time, and keeps the fastest, until look_for_algorithms(false) forgets them. backend_algorithms says what was chosen, in the backend's own words; the
 * caller releases the text (remat_text_release); NULL: there is nothing to say. backend_use_algorithms makes a device that has run
 * nothing yet choose the same. Other choices of another version of its libraries are left out, with a warning. REMAT_INVALID: this is
 * no such text. */
void backend_look_for_algorithms(backend *owner, bool looks);
remat_status backend_algorithms(backend *owner, char **text);
remat_status backend_use_algorithms(backend *owner, const char *text);

/* ---- queues ---- */

remat_status backend_queue_create(backend *owner, backend_queue **made);
void backend_queue_destroy(backend_queue *queue); /* waits for what still runs; NULL is fine */

/* Runs the calls of a recording from one position to another. */
remat_status backend_run(backend_queue *queue, const recording *calls, size_t first, size_t end);

/* Copy from host memory to the backend's memory, and back. */
remat_status backend_copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes);
remat_status backend_copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes);

/* Copies inside the backend's memory; the two places do not overlap. */
remat_status backend_copy_within(backend_queue *queue, void *to, const void *from, uint64_t bytes);

/* Waits until all work of the queue is done. Returns the first failure. */
remat_status backend_wait(backend_queue *queue);

/* ---- events ---- */

remat_status backend_event_create(backend *owner, backend_event **made);
void backend_event_destroy(backend *owner, backend_event *event);

/* The event happens when all earlier work of the queue is done. */
remat_status backend_event_record(backend_queue *queue, backend_event *event);

/* Waits until it has happened. The time is from a monotonic clock. */
remat_status backend_event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds);

#endif
