/* Remat: the context.
 *
 * Every object of the library is made from a context. The context holds
 *   - the details of the last failure;
 *   - the functions that allocate memory: all memory of the library comes from them;
 *   - the function that receives warnings.
 *
 *     remat_context *ctx;
 *     if (remat_context_create(NULL, &ctx) != REMAT_OK) return 1;
 *     ...
 *     if (status != REMAT_OK) fprintf(stderr, "%s\n", remat_context_message(ctx));
 *     remat_context_destroy(ctx);
 *
 * Threads: a context, and every object made from it, may be used by one thread at a time. The library has no global
 * state, so different contexts are independent. */
#ifndef REMAT_CONTEXT_H
#define REMAT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <remat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_context remat_context;

/* Functions that allocate and release memory. `allocate` returns at least `bytes` bytes, aligned to `alignment`, or
 * NULL. `bytes` is never 0; `alignment` is a power of two. `release` gets the pointer and the same `bytes`. It is never
 * called with NULL. The library calls them from one thread at a time, even while it computes with several threads. */
typedef struct remat_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user; /* passed to both */
} remat_allocator;

/* Makes a context. `allocator` NULL: memory comes from malloc, and from mmap for 32 MiB and more. The struct is copied.
 * REMAT_NO_MEMORY. */
remat_status remat_context_create_sized(const remat_allocator *allocator, size_t allocator_size,
                                        remat_context **context);
static inline remat_status remat_context_create(const remat_allocator *allocator, remat_context **context)
{
    return remat_context_create_sized(allocator, sizeof(remat_allocator), context);
}

/* Destroys a context. Destroy everything that was made from it first. */
void remat_context_destroy(remat_context *context);

/* What went wrong in the last call that failed on this context, as one sentence. "" if no call has failed yet. The text
 * belongs to the context and changes with the next failure. */
const char *remat_context_message(const remat_context *context);

/* The same failure as separate values, for programs. Members that do not apply are "" or REMAT_NOWHERE. The struct
 * belongs to the context and changes with the next failure. */
#define REMAT_NOWHERE UINT64_MAX
typedef struct remat_error {
    remat_status status;
    const char *message; /* what remat_context_message returns */
    const char *file;    /* the name that the caller gave */
    uint64_t line;       /* of the file, from 1 */
    uint64_t layer;      /* its position, from 0 */
    uint64_t step;       /* of a schedule, from 0 */
    const char *field;   /* of a record in a file, or of an options struct */
    /* With REMAT_INFEASIBLE: */
    uint64_t budget_bytes;  /* the budget that is too small */
    uint64_t needed_bytes;  /* the smallest budget that is known to work */
    const char *layer_name; /* the layer that needs it; "" if it is not known */
} remat_error;
const remat_error *remat_context_error(const remat_context *context);

/* Sets the function that receives warnings: one sentence each, about something odd but not wrong, such as an unknown
 * key in a file. NULL (the default): warnings are dropped. */
typedef void (*remat_warning_fn)(void *user, const char *message);
void remat_context_on_warning(remat_context *context, remat_warning_fn warn, void *user);

/* Opens a file for the functions that read from a stream; close it with fclose. Unlike fopen, it refuses a folder, and
 * a pipe that nobody has opened for writing within two seconds. REMAT_IO. */
remat_status remat_input_open(remat_context *context, const char *path, FILE **stream);

/* How many bytes are allocated through this context now, and the largest number so far. */
uint64_t remat_context_bytes(const remat_context *context);
uint64_t remat_context_peak_bytes(const remat_context *context);

#ifdef __cplusplus
}
#endif
#endif
