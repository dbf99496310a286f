/* Hashes of 4 KiB chunks. They show whether a recomputed state has the same bits as that of the first forward, without
 * keeping it, and which chunk differs. A hash has 64 bits, 0.2 % of the bytes. It is XXH3 of libxxhash, compiled in.
 * Safe across threads. */
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

/* The number of the first chunk that differs from the data of which `hashes` were made; chunk_hash_count(bytes) if none
 * does. */
size_t chunk_hash_differs(const void *data, size_t bytes, const uint64_t *hashes);

#endif
