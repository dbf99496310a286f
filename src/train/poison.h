/* Under AddressSanitizer, bytes of the arena that belong to no live tensor are poisoned, so that an access to a dropped
 * tensor or a gap is caught at once. In other builds these functions do nothing. */
#ifndef REMAT_TRAIN_POISON_H
#define REMAT_TRAIN_POISON_H

#include "graph/graph_walk.h"

typedef struct poison_map poison_map;

#if defined(__SANITIZE_ADDRESS__)
#define REMAT_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REMAT_POISON 1
#endif
#endif

#ifdef REMAT_POISON
remat_status poison_map_create(remat_context *context, const graph_liveness *liveness, const uint64_t *offsets,
                               char *arena, uint64_t arena_bytes, poison_map **made);
void poison_map_destroy(poison_map *map);
/* Only tensors that are live there may be accessed, and those of later positions that are fused into it, up to `until`. */
void poison_map_enter(poison_map *map, size_t position, size_t until);
/* Before a run goes on at a position, after others may have used the arena. */
void poison_map_resume(poison_map *map, size_t position);
void poison_map_leave(poison_map *map, size_t position);
void poison_map_open(poison_map *map); /* between runs everything may be accessed: data is copied in */
#else
static inline remat_status poison_map_create(remat_context *context, const graph_liveness *liveness,
                                             const uint64_t *offsets, char *arena, uint64_t arena_bytes,
                                             poison_map **made)
{
    (void)context, (void)liveness, (void)offsets, (void)arena, (void)arena_bytes;
    *made = NULL;
    return REMAT_OK;
}
static inline void poison_map_destroy(poison_map *map)
{
    (void)map;
}
static inline void poison_map_enter(poison_map *map, size_t position, size_t until)
{
    (void)map, (void)position, (void)until;
}
static inline void poison_map_resume(poison_map *map, size_t position)
{
    (void)map, (void)position;
}
static inline void poison_map_leave(poison_map *map, size_t position)
{
    (void)map, (void)position;
}
static inline void poison_map_open(poison_map *map)
{
    (void)map;
}
#endif
#endif
