/* Memory that is taken bit by bit and given back all at once: the texts and small arrays of a model or a file. */
#ifndef REMAT_MODEL_POOL_H
#define REMAT_MODEL_POOL_H

#include <remat/context.h>

/* What all texts of one model or file may come to; a short file that repeats a long text must not eat the machine. */
#define MODEL_POOL_LIMIT ((uint64_t)1 << 30)

typedef struct model_pool {
    remat_context *context;
    struct model_pool_chunk *newest;
    uint64_t bytes;
} model_pool;

void model_pool_begin(model_pool *pool, remat_context *context);
void model_pool_end(model_pool *pool);

/* `count` items of `size` bytes, zeroed, aligned for anything. NULL with REMAT_NO_MEMORY on the context. */
void *model_pool_take(model_pool *pool, size_t count, size_t size);

/* A copy of a text, or of its first `length` bytes. */
char *model_pool_text(model_pool *pool, const char *text);
char *model_pool_part(model_pool *pool, const char *text, size_t length);

/* Texts joined: pieces end with NULL. */
char *model_pool_join(model_pool *pool, const char *const *pieces);

#endif
