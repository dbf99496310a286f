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
    remat_release(store->context, store->heap, store->heap_capacity, sizeof *store->heap);
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

/* A total order, so that the same plan comes out everywhere. */
static bool comes_first(const exhaustive_entry *a, const exhaustive_entry *b)
{
    if (a->estimate != b->estimate)
        return a->estimate < b->estimate;
    return a->rank != b->rank ? a->rank < b->rank : a->node > b->node;
}

remat_status exhaustive_store_push(exhaustive_store *store, exhaustive_entry entry)
{
    REMAT_TRY(remat_grow(store->context, (void **)&store->heap, &store->heap_capacity, store->heap_count + 1,
                         sizeof *store->heap));
    size_t at = store->heap_count++;
    for (; at > 0 && comes_first(&entry, &store->heap[(at - 1) / 2]); at = (at - 1) / 2)
        store->heap[at] = store->heap[(at - 1) / 2];
    store->heap[at] = entry;
    return REMAT_OK;
}

exhaustive_entry exhaustive_store_pop(exhaustive_store *store)
{
    exhaustive_entry top = store->heap[0], last = store->heap[--store->heap_count];
    size_t at = 0, child;
    for (; (child = 2 * at + 1) < store->heap_count; at = child) {
        child += child + 1 < store->heap_count && comes_first(&store->heap[child + 1], &store->heap[child]);
        if (!comes_first(&store->heap[child], &last))
            break;
        store->heap[at] = store->heap[child];
    }
    store->heap[at] = last;
    return top;
}
