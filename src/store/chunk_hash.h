/* Hashes of 4 KiB chunks: whether a recomputed state is what the first forward made, to the bit, without keeping it,
 * and where it is not. 64 bits a chunk, 0.2 % of the bytes. XXH3 of libxxhash, compiled in. Safe across threads. */
#ifndef REMAT_STORE_CHUNK_HASH_H
#define REMAT_STORE_CHUNK_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_HASH_BYTES 4096

/* How many hashes `bytes` bytes have: the last chunk may be shorter. 0 for 0. */
static inline size_t chunk_hash_count(size_t bytes)
{
    return bytes / CHUNK_HASH_BYTES + (bytes % CHUNK_HASH_BYTES != 0);
}

/* Writes chunk_hash_count(bytes) hashes. */
void chunk_hash_make(const void *data, size_t bytes, uint64_t *hashes);

/* The number of the first chunk that is not what it was when `hashes` were made (of as many bytes);
 * chunk_hash_count(bytes) where all are. */
size_t chunk_hash_differs(const void *data, size_t bytes, const uint64_t *hashes);

#endif
