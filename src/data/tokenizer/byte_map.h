/* Numbers for strings of bytes, in the order in which they come. */
#ifndef REMAT_DATA_TOKENIZER_BYTE_MAP_H
#define REMAT_DATA_TOKENIZER_BYTE_MAP_H

#include <stdbool.h>

#include "base/error.h"

typedef struct byte_string {
    size_t at, length; /* in the bytes of the map */
} byte_string;

/* A struct of zeros, with the context, is an empty map. */
typedef struct byte_map {
    remat_context *context;
    unsigned char *bytes;
    size_t byte_count, byte_capacity;
    byte_string *strings;
    size_t count, string_capacity;
    uint32_t *slots;
    size_t slot_count;
} byte_map;

void byte_map_end(byte_map *map);

/* The number of a string, which is added where it is new. The bytes may not be those of the map. REMAT_INVALID: there are
 * 2^31 of them. */
remat_status byte_map_add(byte_map *map, const void *bytes, size_t length, uint32_t *number);

static inline const unsigned char *byte_map_at(const byte_map *map, uint32_t number)
{
    return map->bytes + map->strings[number].at;
}

#endif
