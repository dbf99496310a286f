/* All memory of the library comes from the context's allocator. A release passes the size again, so that the context
 * can count bytes exactly. */
#ifndef REMAT_BASE_ALLOC_H
#define REMAT_BASE_ALLOC_H

#include <stdbool.h>

#include <remat/context.h>

/* Allocate `count` items of `size` bytes; a count of 0 is taken as 1. On failure they return NULL, and the context has
 * REMAT_NO_MEMORY. */
void *remat_alloc(remat_context *context, size_t count, size_t size);
void *remat_alloc_zeroed(remat_context *context, size_t count, size_t size);
void *remat_alloc_aligned(remat_context *context, size_t bytes, size_t alignment);
/* Whether new memory of this size comes zeroed from the system, so that nobody needs to write zeros to it. */
bool remat_alloc_comes_zeroed(const remat_context *context, size_t bytes);

/* Releases memory; NULL is fine. */
void remat_release(remat_context *context, void *memory, size_t count, size_t size);

/* Makes room for at least `needed` items in a growing array, at least doubling it. The array may move. */
remat_status remat_grow(remat_context *context, void **items, size_t *capacity, size_t needed, size_t size);
/* Ends the growing of an array with `count` items: it gets exactly the room that they need. The array may move. */
remat_status remat_fit(remat_context *context, void **items, size_t *capacity, size_t count, size_t size);

/* From now on nothing is taken in reserve: a growing array and a pool of texts get what they need at the moment. That is
 * slow. It is for tests: every text and every item is then an allocation that can fail, and a sanitizer sees where it ends. */
void remat_alloc_take_no_reserve(remat_context *context);
bool remat_alloc_takes_reserve(const remat_context *context);

/* Makes a copy of a string, and releases it. */
char *remat_text_copy(remat_context *context, const char *text);
void remat_text_release(remat_context *context, const char *text);

#endif
