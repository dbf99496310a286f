#include "store/chunk_hash.h"

#include "base/hash.h"

void chunk_hash_make(const void *data, size_t bytes, uint64_t *hashes)
{
    const char *at = data;
    size_t whole = bytes / CHUNK_HASH_BYTES;
    for (size_t i = 0; i < whole; i++, at += CHUNK_HASH_BYTES)
        hashes[i] = XXH3_64bits(at, CHUNK_HASH_BYTES);
    if (bytes % CHUNK_HASH_BYTES)
        hashes[whole] = XXH3_64bits(at, bytes % CHUNK_HASH_BYTES);
}

size_t chunk_hash_differs(const void *data, size_t bytes, const uint64_t *hashes)
{
    const char *at = data;
    size_t whole = bytes / CHUNK_HASH_BYTES;
    for (size_t i = 0; i < whole; i++, at += CHUNK_HASH_BYTES)
        if (hashes[i] != XXH3_64bits(at, CHUNK_HASH_BYTES))
            return i;
    if (bytes % CHUNK_HASH_BYTES && hashes[whole] != XXH3_64bits(at, bytes % CHUNK_HASH_BYTES))
        return whole;
    return chunk_hash_count(bytes);
}
