#include "data/tokenizer/byte_map.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

#define EMPTY UINT32_MAX

void byte_map_end(byte_map *map)
{
    remat_release(map->context, map->bytes, map->byte_capacity, 1);
    remat_release(map->context, map->strings, map->string_capacity, sizeof *map->strings);
    remat_release(map->context, map->slots, map->slot_count, sizeof *map->slots);
    *map = (byte_map){.context = map->context};
}

static size_t find_slot(const byte_map *map, const void *bytes, size_t length)
{
    size_t mask = map->slot_count - 1, slot = (size_t)XXH3_64bits(bytes, length) & mask;
    for (; map->slots[slot] != EMPTY; slot = (slot + 1) & mask) {
        const byte_string *other = &map->strings[map->slots[slot]];
        if (other->length == length && memcmp(map->bytes + other->at, bytes, length) == 0)
            break;
    }
    return slot;
}

/* Twice as many slots. */
static remat_status widen(byte_map *map)
{
    size_t wanted = map->slot_count ? 2 * map->slot_count : 1024;
    uint32_t *slots = remat_alloc(map->context, wanted, sizeof *slots);
    if (!slots)
        return REMAT_NO_MEMORY;
    remat_release(map->context, map->slots, map->slot_count, sizeof *map->slots);
    map->slots = slots;
    map->slot_count = wanted;
    memset(slots, 0xff, wanted * sizeof *slots);
    for (size_t i = 0; i < map->count; i++)
        slots[find_slot(map, byte_map_at(map, (uint32_t)i), map->strings[i].length)] = (uint32_t)i;
    return REMAT_OK;
}

remat_status byte_map_add(byte_map *map, const void *bytes, size_t length, uint32_t *number)
{
    if (map->count * 2 >= map->slot_count)
        REMAT_TRY(widen(map));
    size_t slot = find_slot(map, bytes, length);
    if (map->slots[slot] != EMPTY) {
        *number = map->slots[slot];
        return REMAT_OK;
    }
    if (map->count >= INT32_MAX)
        return remat_fail(map->context, REMAT_INVALID, NULL, "the text has too many different words");
    REMAT_TRY(remat_grow(map->context, (void **)&map->bytes, &map->byte_capacity, map->byte_count + length + 1, 1));
    REMAT_TRY(
        remat_grow(map->context, (void **)&map->strings, &map->string_capacity, map->count + 1, sizeof *map->strings));
    memcpy(map->bytes + map->byte_count, bytes, length);
    map->strings[map->count] = (byte_string){map->byte_count, length};
    map->byte_count += length;
    map->slots[slot] = *number = (uint32_t)map->count++;
    return REMAT_OK;
}
