/* The states that the exhaustive search has reached, and those that wait to be expanded. */
#ifndef REMAT_PLAN_CHAIN_EXHAUSTIVE_STORE_H
#define REMAT_PLAN_CHAIN_EXHAUSTIVE_STORE_H

#include "base/heap.h"

#include <remat/schedule.h>

#define EXHAUSTIVE_NO_NODE UINT32_MAX

/* What leads into a state: one step, and the drops directly after it. */
typedef struct exhaustive_edge {
    remat_step step;
    bool drop_input, drop_output;
    bool closed; /* of the state itself: its best way is known */
} exhaustive_edge;

typedef struct exhaustive_node {
    uint64_t state;
    uint64_t label; /* cost or peak of the best way found so far */
    uint32_t parent;
    exhaustive_edge edge;
} exhaustive_node;

typedef struct exhaustive_store {
    remat_context *context;
    exhaustive_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *table; /* open addressing by state; its size is a power of two */
    size_t table_size;
    item_heap waiting; /* what waits to be expanded */
} exhaustive_store;

/* An empty store for up to `most_states`. */
remat_status exhaustive_store_init(exhaustive_store *store, remat_context *context, size_t most_states);
void exhaustive_store_clear(exhaustive_store *store);

/* Enters a state with its label. *node: its number, or EXHAUSTIVE_NO_NODE where something as good is known already. */
remat_status exhaustive_store_reach(exhaustive_store *store, exhaustive_node reached, uint32_t *node);
/* A node waits to be expanded: least estimate first, then least rank, then the newest. */
remat_status exhaustive_store_push(exhaustive_store *store, uint64_t estimate, uint64_t rank, uint32_t node);
/* The node to expand next; one must wait. */
uint32_t exhaustive_store_pop(exhaustive_store *store);

#endif
