#include "model/model_pool.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

typedef struct model_pool_chunk {
    struct model_pool_chunk *older;
    size_t size, used; /* bytes behind this header */
    _Alignas(max_align_t) char bytes[];
} model_pool_chunk;

enum { FIRST_CHUNK = 1 << 12, LARGEST_CHUNK = 1 << 20 };

void model_pool_begin(model_pool *pool, remat_context *context)
{
    *pool = (model_pool){.context = context};
}

void model_pool_end(model_pool *pool)
{
    while (pool->newest) {
        model_pool_chunk *chunk = pool->newest;
        pool->newest = chunk->older;
        remat_release(pool->context, chunk, 1, sizeof *chunk + chunk->size);
    }
    pool->bytes = 0;
}

/* Chunks double, so that a large model has few of them and a small one wastes little. */
static model_pool_chunk *add_chunk(model_pool *pool, size_t needed)
{
    size_t size = pool->newest ? pool->newest->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < needed)
        size = needed;
    model_pool_chunk *chunk = remat_alloc(pool->context, 1, sizeof *chunk + size);
    if (!chunk)
        return NULL;
    *chunk = (model_pool_chunk){.older = pool->newest, .size = size};
    pool->newest = chunk;
    return chunk;
}

void *model_pool_take(model_pool *pool, size_t count, size_t size)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > MODEL_POOL_LIMIT ||
        pool->bytes + bytes > MODEL_POOL_LIMIT) {
        remat_fail(pool->context, REMAT_NO_MEMORY, NULL, "the texts of the model pass %llu bytes",
                   (unsigned long long)MODEL_POOL_LIMIT);
        return NULL;
    }
    bytes = (bytes + alignment - 1) / alignment * alignment;
    model_pool_chunk *chunk = pool->newest;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = add_chunk(pool, bytes);
    if (!chunk)
        return NULL;
    void *taken = chunk->bytes + chunk->used;
    memset(taken, 0, bytes);
    chunk->used += bytes;
    pool->bytes += bytes;
    return taken;
}

char *model_pool_part(model_pool *pool, const char *text, size_t length)
{
    char *copy = model_pool_take(pool, length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *model_pool_text(model_pool *pool, const char *text)
{
    return model_pool_part(pool, text, strlen(text));
}

char *model_pool_join(model_pool *pool, const char *const *pieces)
{
    size_t length = 0;
    for (size_t i = 0; pieces[i]; i++)
        length += strlen(pieces[i]);
    char *joined = model_pool_take(pool, length + 1, 1);
    char *end = joined;
    for (size_t i = 0; joined && pieces[i]; i++)
        end = stpcpy(end, pieces[i]);
    return joined;
}
