#include "base/text_pool.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

typedef struct text_pool_chunk {
    struct text_pool_chunk *older;
    size_t size, used; /* bytes behind this header */
    _Alignas(max_align_t) char bytes[];
} text_pool_chunk;

enum { FIRST_CHUNK = 1 << 12, LARGEST_CHUNK = 1 << 20 };

void text_pool_begin(text_pool *pool, remat_context *context)
{
    *pool = (text_pool){.context = context};
}

void text_pool_end(text_pool *pool)
{
    while (pool->newest) {
        text_pool_chunk *chunk = pool->newest;
        pool->newest = chunk->older;
        remat_release(pool->context, chunk, 1, sizeof *chunk + chunk->size);
    }
    pool->bytes = 0;
}

/* Chunks double, so that a large model has few of them and a small one wastes little. */
static text_pool_chunk *add_chunk(text_pool *pool, size_t needed)
{
    size_t size = pool->newest ? pool->newest->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < needed || !remat_alloc_takes_reserve(pool->context))
        size = needed;
    text_pool_chunk *chunk = remat_alloc(pool->context, 1, sizeof *chunk + size);
    if (!chunk)
        return NULL;
    *chunk = (text_pool_chunk){.older = pool->newest, .size = size};
    pool->newest = chunk;
    return chunk;
}

void *text_pool_take(text_pool *pool, size_t count, size_t size)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > TEXT_POOL_LIMIT ||
        pool->bytes + bytes > TEXT_POOL_LIMIT) {
        remat_fail(pool->context, REMAT_NO_MEMORY, NULL, "the texts of the model pass %llu bytes",
                   (unsigned long long)TEXT_POOL_LIMIT);
        return NULL;
    }
    bytes = (bytes + alignment - 1) / alignment * alignment;
    text_pool_chunk *chunk = pool->newest;
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

char *text_pool_part(text_pool *pool, const char *text, size_t length)
{
    char *copy = text_pool_take(pool, length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *text_pool_text(text_pool *pool, const char *text)
{
    return text_pool_part(pool, text, strlen(text));
}

char *text_pool_join(text_pool *pool, const char *const *pieces)
{
    size_t length = 0;
    for (size_t i = 0; pieces[i]; i++)
        length += strlen(pieces[i]);
    char *joined = text_pool_take(pool, length + 1, 1);
    char *end = joined;
    for (size_t i = 0; joined && pieces[i]; i++)
        end = stpcpy(end, pieces[i]);
    return joined;
}
