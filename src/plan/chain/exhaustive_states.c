#include "plan/chain/exhaustive_states.h"

#include "base/alloc.h"

#include <string.h>

/* ---- states ---- */

static unsigned bits_for(uint64_t largest)
{
    return largest ? 64 - (unsigned)__builtin_clzll(largest) : 0;
}

bool exhaustive_layout_init(exhaustive_layout *layout, const remat_profile *chain)
{
    size_t n = chain->layer_count;
    *layout = (exhaustive_layout){.chain = chain, .layer_count = n};
    if (n > EXHAUSTIVE_MOST_LAYERS)
        return false;
    unsigned used = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        unsigned width = bits_for(chain->layers[i].mode_count);
        layout->save_shift[i] = used;
        layout->save_mask[i] = ((uint64_t)1 << width) - 1;
        used += width;
        if (used + bits_for(n + 1) > 64)
            return false;
    }
    layout->stage_shift = used;
    return true;
}

bool exhaustive_inside_saved(const exhaustive_layout *layout, uint64_t state, size_t i)
{
    const remat_mode *saved = i > 0 ? exhaustive_saved(layout, state, i - 1) : NULL;
    return saved && saved->holds_output;
}

bool exhaustive_readable(const exhaustive_layout *layout, uint64_t state, size_t i)
{
    return exhaustive_x_live(state, i) || exhaustive_inside_saved(layout, state, i);
}

uint64_t exhaustive_live_bytes(const exhaustive_layout *layout, uint64_t state)
{
    const remat_profile *chain = layout->chain;
    uint64_t live = chain->input_bytes;
    for (size_t i = 0; i < layout->layer_count; i++) {
        const remat_mode *saved = exhaustive_saved(layout, state, i);
        if (saved)
            live += saved->activation_bytes;
        if (exhaustive_x_live(state, i + 1))
            live += chain->layers[i].output_bytes;
    }
    size_t stage = exhaustive_stage(layout, state);
    return stage <= layout->layer_count ? live + remat_chain_y_bytes(chain, stage) : live;
}

/* ---- the table ---- */

/* Where the state is, or where it would go. */
static size_t slot_of(const exhaustive_store *store, uint64_t state)
{
    uint64_t hash = state * 0x9E3779B97F4A7C15u;
    size_t mask = store->table_size - 1, slot = (size_t)(hash ^ hash >> 29) & mask;
    while (store->table[slot] != EXHAUSTIVE_NO_NODE && store->nodes[store->table[slot]].state != state)
        slot = (slot + 1) & mask;
    return slot;
}

/* Room for one more state in a table that is at most half full. */
static remat_status grow_table(exhaustive_store *store)
{
    if (2 * (store->node_count + 1) <= store->table_size)
        return REMAT_OK;
    size_t size = store->table_size ? 2 * store->table_size : 1024;
    uint32_t *table = remat_alloc(store->context, size, sizeof *table);
    if (!table)
        return REMAT_NO_MEMORY;
    memset(table, 0xff, size * sizeof *table);
    remat_release(store->context, store->table, store->table_size, sizeof *table);
    store->table = table;
    store->table_size = size;
    for (size_t t = 0; t < store->node_count; t++)
        table[slot_of(store, store->nodes[t].state)] = (uint32_t)t;
    return REMAT_OK;
}

remat_status exhaustive_store_reach(exhaustive_store *store, const exhaustive_node *reached, uint32_t *node,
                                    bool *improved)
{
    REMAT_TRY(grow_table(store));
    size_t slot = slot_of(store, reached->state);
    *node = store->table[slot];
    *improved = false;
    if (*node == EXHAUSTIVE_NO_NODE) {
        REMAT_TRY(remat_grow(store->context, (void **)&store->nodes, &store->node_capacity, store->node_count + 1,
                             sizeof *store->nodes));
        *node = store->table[slot] = (uint32_t)store->node_count++;
    } else if (store->nodes[*node].edge.closed || store->nodes[*node].label <= reached->label) {
        return REMAT_OK;
    }
    store->nodes[*node] = *reached;
    *improved = true;
    return REMAT_OK;
}

/* ---- the heap ---- */

/* A total order, so that the same plan comes out everywhere. */
static bool comes_first(const exhaustive_entry *a, const exhaustive_entry *b)
{
    if (a->estimate != b->estimate)
        return a->estimate < b->estimate;
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->node > b->node;
}

remat_status exhaustive_store_push(exhaustive_store *store, exhaustive_entry entry)
{
    REMAT_TRY(remat_grow(store->context, (void **)&store->heap, &store->heap_capacity, store->heap_count + 1,
                         sizeof *store->heap));
    size_t at = store->heap_count++;
    while (at > 0 && comes_first(&entry, &store->heap[(at - 1) / 2])) {
        store->heap[at] = store->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    store->heap[at] = entry;
    return REMAT_OK;
}

exhaustive_entry exhaustive_store_pop(exhaustive_store *store)
{
    exhaustive_entry top = store->heap[0], last = store->heap[--store->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= store->heap_count)
            break;
        if (child + 1 < store->heap_count && comes_first(&store->heap[child + 1], &store->heap[child]))
            child++;
        if (!comes_first(&store->heap[child], &last))
            break;
        store->heap[at] = store->heap[child];
        at = child;
    }
    store->heap[at] = last;
    return top;
}

void exhaustive_store_clear(exhaustive_store *store)
{
    remat_release(store->context, store->nodes, store->node_capacity, sizeof *store->nodes);
    remat_release(store->context, store->table, store->table_size, sizeof *store->table);
    remat_release(store->context, store->heap, store->heap_capacity, sizeof *store->heap);
    *store = (exhaustive_store){.context = store->context};
}
