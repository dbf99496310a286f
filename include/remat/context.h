/* Remat: the context.
 *
 * Every object of the library is made from a context. The context carries
 *   - the details of the last failure: a sentence that names the file, line, layer or field and says what is right;
 *   - the allocation hook: all memory of the library comes through it;
 *   - the warning hook: the library itself never prints.
 *
 *     remat_context *ctx;
 *     if (remat_context_create(NULL, &ctx) != REMAT_OK) return 1;
 *     ...
 *     if (status != REMAT_OK) fprintf(stderr, "%s\n", remat_context_message(ctx));
 *     remat_context_destroy(ctx);
 *
 * Threads: one context, and whatever is made from it, belongs to one thread at a time. Different contexts are
 * independent: the library has no global state. */
#ifndef REMAT_CONTEXT_H
#define REMAT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <remat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_context remat_context;

/* Where memory comes from. `allocate` returns `bytes` bytes (never 0) aligned to `alignment` (a power of two), or
 * NULL. `release` gets back the same pointer and the same `bytes`; it is never called with NULL.
 * With several threads inside one call of the library (the optimal planner) the hook is called by one thread only. */
typedef struct remat_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} remat_allocator;

/* Makes a context. `allocator` NULL: the C library's, and the system's for 32 MiB and more. The struct is copied.
 * REMAT_NO_MEMORY where it cannot. */
remat_status remat_context_create(const remat_allocator *allocator, remat_context **context);

/* Frees a context. Everything made from it must be destroyed before. NULL is fine. */
void remat_context_destroy(remat_context *context);

/* What the last failed call on this context had to say, as one sentence; "" if nothing failed yet.
 * Owned by the context, good until its next failure. */
const char *remat_context_message(const remat_context *context);

/* The parts of that sentence, for programs. Strings are "" and numbers REMAT_NOWHERE where they do not apply. */
#define REMAT_NOWHERE UINT64_MAX
typedef struct remat_error {
    remat_status status;
    const char *message;
    const char *file;  /* as the caller named it */
    uint64_t line;     /* from 1 */
    uint64_t layer;    /* position from 0 */
    uint64_t step;     /* of a schedule, from 0 */
    const char *field; /* of a file's record or of an options struct */
    /* Of REMAT_INFEASIBLE: */
    uint64_t budget_bytes;  /* the budget that is too small */
    uint64_t needed_bytes;  /* the smallest budget known to work */
    const char *layer_name; /* the layer that needs it; "" where it is not known */
} remat_error;
const remat_error *remat_context_error(const remat_context *context);

/* Called with one sentence for each thing that is odd but not wrong, such as an unknown key in a file. */
typedef void (*remat_warning_fn)(void *user, const char *message);
void remat_context_on_warning(remat_context *context, remat_warning_fn warn, void *user);

/* Bytes that the library holds through the hook right now, and the most it held at once. */
uint64_t remat_context_bytes(const remat_context *context);
uint64_t remat_context_peak_bytes(const remat_context *context);

#ifdef __cplusplus
}
#endif
#endif
