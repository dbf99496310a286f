/* Places tensors in one arena: every tensor gets an address. Tensors that are live at the same time never share bytes,
 * and the arena is as small as the search can make it.
 *
 *   address ^
 *           |      +-----+          height: the highest byte used
 *           |  +---+  C  +----+
 *           |  | B +--+--+    |     two boxes may touch, never overlap
 *           |  +---+     | D  |
 *           |  |     A   |    |
 *         0 +--+---------+----+--> time (half open: [lower, upper))
 *
 * No clock and no threads are used: the same input and options give the same result on every machine. All memory is
 * released before a call returns. */
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
    uint64_t lower_bound;   /* no placement needs fewer bytes */
    uint64_t nodes;         /* search effort spent */
    bool proven_optimal;    /* height == lower_bound */
    bool proven_impossible; /* with REMAT_INFEASIBLE: lower_bound > capacity */
} arena_result;

/* REMAT_INVALID: the alignment is 0, a live range ends before it begins (the message names its row), or the sizes sum
 * to 2^63 or more. REMAT_INFEASIBLE: the best placement found does not fit the capacity; its offsets are written.
 * REMAT_NO_MEMORY: the offsets are unchanged. */
remat_status arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count, const arena_options *options,
                         arena_result *result);

/* Checks that no two tensors share bytes while both are live, in O(n log n) and without any code of the solver.
 * REMAT_CHECK_FAILED: the message has the rows. */
remat_status arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count, uint64_t alignment,
                         uint64_t height);

#endif
