/* The states of the exhaustive search, and the store of those it has reached.
 *
 * A state says which x_1..x_N are live on their own, in which mode each live s_i was saved, and how far the backward
 * is. It is packed into 64 bits. The input is always live: it cannot be made again, and backward 0, the last step,
 * reads it. */
#ifndef REMAT_PLAN_CHAIN_EXHAUSTIVE_STATES_H
#define REMAT_PLAN_CHAIN_EXHAUSTIVE_STATES_H

#include "graph/chain.h"

#define EXHAUSTIVE_MOST_LAYERS 16
#define EXHAUSTIVE_NO_NODE     UINT32_MAX

/* ---- states ---- */

typedef struct exhaustive_layout {
    const remat_profile *chain;
    size_t layer_count;
    unsigned save_shift[EXHAUSTIVE_MOST_LAYERS];
    uint64_t save_mask[EXHAUSTIVE_MOST_LAYERS]; /* before the shift */
    unsigned stage_shift;
} exhaustive_layout;

/* False where the chain has too many layers or modes for 64 bits. */
bool exhaustive_layout_init(exhaustive_layout *layout, const remat_profile *chain);

static inline uint64_t exhaustive_x_bit(size_t i)
{
    return (uint64_t)1 << (i - 1);
}

/* Whether x_i is live on its own. */
static inline bool exhaustive_x_live(uint64_t state, size_t i)
{
    return i == 0 || (state & exhaustive_x_bit(i)) != 0;
}

static inline uint64_t exhaustive_saved_bits(const exhaustive_layout *layout, size_t i, size_t mode)
{
    return (uint64_t)(mode + 1) << layout->save_shift[i];
}

/* The mode of s_i, NULL where it is not live. */
static inline const remat_mode *exhaustive_saved(const exhaustive_layout *layout, uint64_t state, size_t i)
{
    uint64_t number = state >> layout->save_shift[i] & layout->save_mask[i];
    return number ? &layout->chain->layers[i].modes[number - 1] : NULL;
}

static inline uint64_t exhaustive_without_saved(const exhaustive_layout *layout, uint64_t state, size_t i)
{
    return state & ~(layout->save_mask[i] << layout->save_shift[i]);
}

/* N + 1: the loss has not run yet; b <= N: y_b is live, so that the layers below b are unfinished. */
static inline size_t exhaustive_stage(const exhaustive_layout *layout, uint64_t state)
{
    return (size_t)(state >> layout->stage_shift);
}

static inline uint64_t exhaustive_with_stage(const exhaustive_layout *layout, uint64_t state, size_t stage)
{
    return (state & (((uint64_t)1 << layout->stage_shift) - 1)) | (uint64_t)stage << layout->stage_shift;
}

/* Whether x_i can be read from the saved state of layer i-1; and whether it can be read at all. */
bool exhaustive_inside_saved(const exhaustive_layout *layout, uint64_t state, size_t i);
bool exhaustive_readable(const exhaustive_layout *layout, uint64_t state, size_t i);

/* All that is live. */
uint64_t exhaustive_live_bytes(const exhaustive_layout *layout, uint64_t state);

/* ---- the states reached ---- */

/* What leads into a state: one step, and the drops directly after it. */
typedef struct exhaustive_edge {
    uint16_t mode; /* of a forward: as remat_step.save */
    uint8_t layer;
    uint8_t op : 4; /* a remat_op */
    uint8_t drop_input : 1, drop_output : 1;
    uint8_t closed : 1; /* of the state itself: its best way is known */
} exhaustive_edge;

typedef struct exhaustive_node {
    uint64_t state;
    uint64_t label; /* cost or peak of the best way found so far */
    uint32_t parent;
    exhaustive_edge edge;
} exhaustive_node;

/* What waits to be expanded: least estimate first, then least rank, then the newest. */
typedef struct exhaustive_entry {
    uint64_t estimate, rank;
    uint32_t node;
} exhaustive_entry;

typedef struct exhaustive_store {
    remat_context *context;
    exhaustive_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *table; /* open addressing by state; its size is a power of two */
    size_t table_size;
    exhaustive_entry *heap;
    size_t heap_count, heap_capacity;
} exhaustive_store;

/* Enters a state with its label. *improved: nothing as good was known; *node is its number then. */
remat_status exhaustive_store_reach(exhaustive_store *store, const exhaustive_node *reached, uint32_t *node,
                                    bool *improved);
remat_status exhaustive_store_push(exhaustive_store *store, exhaustive_entry entry);
/* The first entry; there must be one. */
exhaustive_entry exhaustive_store_pop(exhaustive_store *store);
void exhaustive_store_clear(exhaustive_store *store);

#endif
