#include "plan/chain/exhaustive_store.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

remat_status exhaustive_store_init(exhaustive_store *store, remat_context *context, size_t most_states)
{
    *store = (exhaustive_store){.context = context, .table_size = 2};
    while (store->table_size < 2 * most_states)
        store->table_size *= 2;
    store->table = remat_alloc(context, store->table_size, sizeof *store->table);
    if (!store->table)
        return REMAT_NO_MEMORY;
    memset(store->table, 0xff, store->table_size * sizeof *store->table);
    return REMAT_OK;
}

void exhaustive_store_clear(exhaustive_store *store)
{
    remat_release(store->context, store->nodes, store->node_capacity, sizeof *store->nodes);
    remat_release(store->context, store->table, store->table_size, sizeof *store->table);
    heap_end(store->context, &store->waiting);
}

remat_status exhaustive_store_reach(exhaustive_store *store, exhaustive_node reached, uint32_t *node)
{
    uint64_t hash = reached.state * 0x9E3779B97F4A7C15u;
    size_t mask = store->table_size - 1, slot = (size_t)(hash ^ hash >> 29) & mask;
    while (store->table[slot] != EXHAUSTIVE_NO_NODE && store->nodes[store->table[slot]].state != reached.state)
        slot = (slot + 1) & mask;
    *node = store->table[slot];
    if (*node != EXHAUSTIVE_NO_NODE &&
        (store->nodes[*node].edge.closed || store->nodes[*node].label <= reached.label)) {
        *node = EXHAUSTIVE_NO_NODE;
        return REMAT_OK;
    }
    if (*node == EXHAUSTIVE_NO_NODE) {
        if (store->node_count >= mask)
            return remat_fail(store->context, REMAT_INTERNAL, NULL,
                              "the exhaustive search has more states than counted");
        REMAT_TRY(remat_grow(store->context, (void **)&store->nodes, &store->node_capacity, store->node_count + 1,
                             sizeof *store->nodes));
        *node = store->table[slot] = (uint32_t)store->node_count++;
    }
    store->nodes[*node] = reached;
    return REMAT_OK;
}

remat_status exhaustive_store_push(exhaustive_store *store, uint64_t estimate, uint64_t rank, uint32_t node)
{
    return heap_push(store->context, &store->waiting, (heap_item){estimate, rank, UINT32_MAX - node});
}

uint32_t exhaustive_store_pop(exhaustive_store *store)
{
    return UINT32_MAX - heap_pop(&store->waiting).value;
}
