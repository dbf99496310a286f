#include "support/slow_schedules.h"

#include <stdlib.h>
#include <string.h>

/* `key` is what is minimized: the cost, or the highest peak so far. */
typedef struct node {
    uint64_t live, key;
    uint32_t next; /* the first action with `once` that has not run */
    bool done;
} node;

typedef struct table {
    const remat_graph *graph;
    uint64_t limit;
    bool by_peak;
    node *nodes;
    uint32_t *slots; /* a hash table of nodes; 0 is empty, else number + 1 */
    size_t node_count, node_capacity, slot_count;
    struct heap_entry {
        uint64_t key;
        uint32_t number;
    } * heap; /* an entry whose node was reached in a better way since is passed over */
    size_t heap_count, heap_capacity;
} table;

static uint64_t mask_of(const uint32_t *tensors, size_t count)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < count; i++)
        mask |= (uint64_t)1 << tensors[i];
    return mask;
}

static uint64_t reads_of(const table *t, uint32_t action)
{
    const graph_action *a = &t->graph->actions[action];
    return mask_of(graph_reads(t->graph, a), graph_need_count(a));
}

static uint64_t writes_of(const table *t, uint32_t action)
{
    const graph_action *a = &t->graph->actions[action];
    return mask_of(graph_writes(t->graph, a), a->write_count);
}

static uint64_t given_of(const table *t)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < t->graph->tensor_count; i++)
        mask |= (uint64_t)t->graph->tensors[i].given << i;
    return mask;
}

static uint64_t bytes_of(const table *t, uint64_t live)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->graph->tensor_count; i++)
        bytes += live >> i & 1 ? t->graph->tensors[i].bytes : 0;
    return bytes;
}

static uint32_t next_once(const table *t, uint32_t from)
{
    while (from < t->graph->action_count && !t->graph->actions[from].once)
        from++;
    return from;
}

static void heap_swap(table *t, size_t a, size_t b)
{
    struct heap_entry swapped = t->heap[a];
    t->heap[a] = t->heap[b];
    t->heap[b] = swapped;
}

static void heap_push(table *t, uint32_t number)
{
    if (t->heap_count == t->heap_capacity) {
        t->heap_capacity = 2 * t->heap_capacity + 64;
        t->heap = realloc(t->heap, t->heap_capacity * sizeof *t->heap);
    }
    size_t at = t->heap_count++;
    t->heap[at] = (struct heap_entry){t->nodes[number].key, number};
    for (; at > 0 && t->heap[at].key < t->heap[(at - 1) / 2].key; at = (at - 1) / 2)
        heap_swap(t, at, (at - 1) / 2);
}

static uint32_t heap_pop(table *t)
{
    uint32_t first = t->heap[0].number;
    t->heap[0] = t->heap[--t->heap_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < t->heap_count; child++)
            least = t->heap[child].key < t->heap[least].key ? child : least;
        if (least == at)
            return first;
        heap_swap(t, at, least);
        at = least;
    }
}

static size_t slot_of(const table *t, uint64_t live, uint32_t next)
{
    size_t slot = (live * 0x9e3779b97f4a7c15 + next * 0xc2b2ae3d27d4eb4f) >> 20 & (t->slot_count - 1);
    while (t->slots[slot] && (t->nodes[t->slots[slot] - 1].live != live || t->nodes[t->slots[slot] - 1].next != next))
        slot = (slot + 1) & (t->slot_count - 1);
    return slot;
}

static void grow(table *t)
{
    t->slot_count = t->slot_count ? 2 * t->slot_count : 1024;
    free(t->slots);
    t->slots = calloc(t->slot_count, sizeof *t->slots);
    for (uint32_t i = 0; i < t->node_count; i++)
        t->slots[slot_of(t, t->nodes[i].live, t->nodes[i].next)] = i + 1;
}

static void reach(table *t, uint64_t live, uint32_t next, uint64_t key)
{
    if (2 * (t->node_count + 1) > t->slot_count)
        grow(t);
    size_t slot = slot_of(t, live, next);
    if (!t->slots[slot]) {
        if (t->node_count == t->node_capacity) {
            t->node_capacity = 2 * t->node_capacity + 64;
            t->nodes = realloc(t->nodes, t->node_capacity * sizeof *t->nodes);
        }
        t->nodes[t->node_count++] = (node){live, UINT64_MAX, next, false};
        t->slots[slot] = (uint32_t)t->node_count;
    }
    node *to = &t->nodes[t->slots[slot] - 1];
    if (to->done || key >= to->key)
        return;
    to->key = key;
    heap_push(t, t->slots[slot] - 1);
}

/* What nobody makes again and an action with `once` that is still to run reads: without it there is no way to the end. */
static uint64_t kept_of(const table *t, uint32_t next)
{
    uint64_t reads = 0, makable = 0;
    for (uint32_t i = 0; i < t->graph->action_count; i++)
        if (!t->graph->actions[i].once)
            makable |= writes_of(t, i);
        else if (i >= next)
            reads |= reads_of(t, i);
    return reads & ~makable;
}

/* One action, with everything live that is live: once where its write takes the place of a read that ends here, once not. */
static void run(table *t, node from, uint32_t action)
{
    const graph_action *a = &t->graph->actions[action];
    uint64_t reads = reads_of(t, action), writes = writes_of(t, action);
    if ((reads & ~from.live) || (writes & from.live))
        return;
    uint32_t next = a->once ? next_once(t, action + 1) : from.next;
    uint64_t bytes = bytes_of(t, from.live | writes) + a->workspace_bytes;
    for (int in_place = 0; in_place < 2; in_place++) {
        uint64_t now = bytes, live = from.live | writes;
        if (in_place) {
            uint32_t r = a->in_place_from, w = a->in_place_to;
            if (r == GRAPH_NONE || t->graph->tensors[r].given ||
                t->graph->tensors[w].bytes > t->graph->tensors[r].bytes)
                continue;
            now -= t->graph->tensors[w].bytes;
            live &= ~((uint64_t)1 << r);
        }
        if (t->by_peak)
            reach(t, live, next, now > from.key ? now : from.key);
        else if (now <= t->limit)
            reach(t, live, next, from.key + a->cost);
    }
}

static uint64_t solve(table *t)
{
    const uint64_t given = given_of(t), results = mask_of(t->graph->results, t->graph->result_count);
    uint64_t found = UINT64_MAX;
    reach(t, given, next_once(t, 0), 0);
    while (t->heap_count && found == UINT64_MAX) {
        uint32_t number = heap_pop(t);
        if (t->nodes[number].done)
            continue;
        t->nodes[number].done = true;
        node now = t->nodes[number];
        if (now.next == t->graph->action_count && !(results & ~now.live)) {
            found = now.key;
            break;
        }
        for (uint64_t left = now.live & ~given & ~kept_of(t, now.next); left; left &= left - 1)
            reach(t, now.live & ~(left & -left), now.next, now.key);
        for (uint32_t i = 0; i < t->graph->action_count; i++)
            if (!t->graph->actions[i].once || i == now.next)
                run(t, now, i);
    }
    free(t->nodes);
    free(t->slots);
    free(t->heap);
    return found;
}

uint64_t slow_cheapest(const remat_graph *graph, uint64_t limit)
{
    table t = {.graph = graph, .limit = limit};
    return solve(&t);
}

uint64_t slow_lowest_peak(const remat_graph *graph)
{
    table t = {.graph = graph, .by_peak = true};
    return solve(&t);
}
