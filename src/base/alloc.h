/* Memory, always through the context's hook. Callers say the size again when they give memory back, so that the
 * hook can count to the byte. */
#ifndef REMAT_BASE_ALLOC_H
#define REMAT_BASE_ALLOC_H

#include <stdbool.h>

#include <remat/context.h>

/* `count` items of `size` bytes; count 0 counts as 1. NULL with REMAT_NO_MEMORY on the context where there is none. */
void *remat_alloc(remat_context *context, size_t count, size_t size);
void *remat_alloc_zeroed(remat_context *context, size_t count, size_t size);
void *remat_alloc_aligned(remat_context *context, size_t bytes, size_t alignment);
/* Whether new memory of this size is zero as it comes, so that nobody needs to write and touch it. */
bool remat_alloc_comes_zeroed(const remat_context *context, size_t bytes);

/* Gives it back; NULL is fine. */
void remat_release(remat_context *context, void *memory, size_t count, size_t size);

/* Makes room for at least `needed` items in a growing array, at least doubling it. The array may move. */
remat_status remat_grow(remat_context *context, void **items, size_t *capacity, size_t needed, size_t size);

/* A copy of a string, and giving it back. */
char *remat_text_copy(remat_context *context, const char *text);
void remat_text_release(remat_context *context, const char *text);

#endif
