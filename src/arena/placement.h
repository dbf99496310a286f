/* Placing tensors in one piece of memory: every tensor gets an address, so that tensors alive at the same time never share
 * bytes, in as few bytes in all as can be found.
 *
 *   address ^
 *           |      +-----+          height: the highest byte used
 *           |  +---+  C  +----+
 *           |  | B +--+--+    |     two boxes may touch, never overlap
 *           |  +---+     | D  |
 *           |  |     A   |    |
 *         0 +--+---------+----+--> time (half open: [lower, upper))
 *
 * No clock and no threads: the same input and options give the same answer on every machine. Memory is given back before
 * a call returns. */
#ifndef REMAT_ARENA_PLACEMENT_H
#define REMAT_ARENA_PLACEMENT_H

#include <stdbool.h>

#include <remat/arena.h>
#include <remat/context.h>

typedef struct arena_options {
    uint64_t alignment;  /* 1 or more; sizes are rounded up to it */
    uint64_t capacity;   /* 0: as low as possible; else stop at the first fit */
    uint64_t node_limit; /* search effort; 0: heuristics only */
} arena_options;

#define ARENA_DEFAULT_NODE_LIMIT UINT64_C(1000000)

typedef struct arena_result {
    uint64_t height;        /* bytes the placement needs */
    uint64_t lower_bound;   /* bytes no placement can go under */
    uint64_t nodes;         /* search effort spent */
    bool proven_optimal;    /* height == lower_bound */
    bool proven_impossible; /* with REMAT_INFEASIBLE: lower_bound > capacity */
} arena_result;

/* REMAT_INVALID: alignment 0, a lifetime that ends before it begins (the message names its row), or sizes that add up past
 * 2^63. REMAT_INFEASIBLE: the best placement found is written, but does not fit the capacity. REMAT_NO_MEMORY: offsets are
 * as they were. */
remat_status arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count, const arena_options *options,
                         arena_result *result);

/* Whether no two tensors share bytes while both are alive, in O(n log n) and with no code of the placement. REMAT_OK, or
 * REMAT_CHECK_FAILED with the rows. */
remat_status arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count, uint64_t alignment,
                         uint64_t height);

#endif
