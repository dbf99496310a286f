/* Memory that is allocated in small parts and released all at once: the texts and small arrays of a model or a file. */
#ifndef REMAT_BASE_TEXT_POOL_H
#define REMAT_BASE_TEXT_POOL_H

#include <remat/context.h>

/* The limit for all texts of one model or file. Without it, a short file that repeats a long text could use all
 * memory. */
#define TEXT_POOL_LIMIT ((uint64_t)1 << 30)

typedef struct text_pool {
    remat_context *context;
    struct text_pool_chunk *newest;
    uint64_t bytes;
} text_pool;

void text_pool_begin(text_pool *pool, remat_context *context);
void text_pool_end(text_pool *pool);

/* `count` items of `size` bytes, zeroed, aligned for anything. NULL with REMAT_NO_MEMORY on the context. */
void *text_pool_take(text_pool *pool, size_t count, size_t size);

/* A copy of a text, or of its first `length` bytes. */
char *text_pool_text(text_pool *pool, const char *text);
char *text_pool_part(text_pool *pool, const char *text, size_t length);

/* Joins texts; the list of pieces ends with NULL. */
char *text_pool_join(text_pool *pool, const char *const *pieces);

#endif
