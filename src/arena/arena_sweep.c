/* Placement by walking through time, as an allocator would at run time, forwards
 * and backwards, each with best fit and first fit. The live ranges of a training
 * step leave few gaps this way. A walk costs O(n log n) if the list of holes
 * stays short.
 *
 *   address 0 |####|  hole  |##|hole|######|  ... last hole, without end  */
#include "arena/arena_internal.h"
#include "base/search.h"

#define MOST_HOLES_SEARCHED 512u /* keeps a badly fragmented walk from going quadratic */

typedef struct {
    uint64_t at, size;
} hole;

typedef struct {
    const arena_part *part;
    hole *holes; /* by address; the last one reaches to the end of memory */
    uint32_t hole_count;
    uint32_t *starts, *stops, *scratch; /* item indices by time of start, of stop */
    uint64_t *keys, *offsets;
    bool backwards, best_fit;
} walk;

static uint64_t start_of(const walk *w, const arena_item *item)
{
    return w->backwards ? UINT32_MAX - item->end : item->begin;
}

static uint64_t stop_of(const walk *w, const arena_item *item)
{
    return w->backwards ? UINT32_MAX - item->begin : item->end;
}

/* Starts: by time, longest first among those of one moment. */
static void sort_events(walk *w)
{
    const arena_part *part = w->part;
    for (uint32_t i = 0; i < part->count; i++) {
        w->starts[i] = w->stops[i] = i;
        w->keys[i] = UINT64_MAX - part->items[i].length;
    }
    arena_sort(w->starts, w->keys, w->scratch, part->count);
    for (uint32_t i = 0; i < part->count; i++)
        w->keys[i] = start_of(w, &part->items[i]);
    arena_sort(w->starts, w->keys, w->scratch, part->count);
    for (uint32_t i = 0; i < part->count; i++)
        w->keys[i] = stop_of(w, &part->items[i]);
    arena_sort(w->stops, w->keys, w->scratch, part->count);
}

static uint32_t pick_hole(const walk *w, uint64_t size)
{
    uint32_t last = w->hole_count - 1, best = last;
    uint32_t limit = last < MOST_HOLES_SEARCHED ? last : MOST_HOLES_SEARCHED;
    for (uint32_t i = 0; i < limit; i++) {
        if (w->holes[i].size < size || w->holes[i].size >= w->holes[best].size)
            continue;
        best = i;
        if (!w->best_fit)
            break;
    }
    return best;
}

static void take(walk *w, uint32_t item)
{
    uint64_t size = w->part->items[item].size;
    uint32_t at = pick_hole(w, size);
    w->offsets[item] = w->holes[at].at;
    w->holes[at].at += size;
    w->holes[at].size -= size;
    if (w->holes[at].size > 0)
        return;
    w->hole_count--;
    for (; at < w->hole_count; at++)
        w->holes[at] = w->holes[at + 1];
}

static uint32_t first_hole_after(const walk *w, uint64_t address)
{
    return (uint32_t)REMAT_FIRST(i, 0, w->hole_count, w->holes[i].at >= address);
}

/* The last hole lies above everything taken, so there is always a next one. */
static void give_back(walk *w, uint32_t item)
{
    uint64_t from = w->offsets[item], size = w->part->items[item].size;
    uint32_t next = first_hole_after(w, from);
    bool joins_next = w->holes[next].at == from + size;
    bool joins_previous = next > 0 && w->holes[next - 1].at + w->holes[next - 1].size == from;
    if (joins_next && joins_previous) {
        w->holes[next - 1].size += size + w->holes[next].size;
        w->hole_count--;
        for (uint32_t i = next; i < w->hole_count; i++)
            w->holes[i] = w->holes[i + 1];
    } else if (joins_next) {
        w->holes[next].at = from;
        w->holes[next].size += size;
    } else if (joins_previous) {
        w->holes[next - 1].size += size;
    } else {
        for (uint32_t i = w->hole_count++; i > next; i--)
            w->holes[i] = w->holes[i - 1];
        w->holes[next] = (hole){from, size};
    }
}

/* Whether the placement is lower than the part's best one; if not, it is not finished. */
static bool walk_through(walk *w)
{
    const arena_part *part = w->part;
    uint32_t stopped = 0;
    w->holes[0] = (hole){0, UINT64_MAX / 2 + 1}; /* totals stay below 2^63 */
    w->hole_count = 1;
    for (uint32_t i = 0; i < part->count; i++) {
        uint64_t now = start_of(w, &part->items[w->starts[i]]);
        while (stop_of(w, &part->items[w->stops[stopped]]) <= now)
            give_back(w, w->stops[stopped++]);
        take(w, w->starts[i]);
        if (w->offsets[w->starts[i]] + part->items[w->starts[i]].size >= part->height)
            return false;
    }
    return true;
}

static void try_walks(walk *w, arena_part *part, uint64_t goal)
{
    for (uint32_t kind = 0; kind < 4 && part->height > goal; kind++) {
        w->backwards = kind % 2 == 1;
        w->best_fit = kind < 2;
        sort_events(w);
        if (!walk_through(w))
            continue;
        part->height = arena_height_of(part, w->offsets);
        for (uint32_t i = 0; i < part->count; i++)
            part->offsets[i] = w->offsets[i];
    }
}

remat_status arena_sweep(remat_context *context, arena_part *part, uint64_t goal)
{
    walk w = {.part = part};
    w.holes = arena_array(context, (size_t)part->count + 2, sizeof *w.holes);
    w.starts = arena_array(context, part->count, sizeof *w.starts);
    w.stops = arena_array(context, part->count, sizeof *w.stops);
    w.scratch = arena_array(context, part->count, sizeof *w.scratch);
    w.keys = arena_array(context, part->count, sizeof *w.keys);
    w.offsets = arena_array(context, part->count, sizeof *w.offsets);
    bool ready = w.holes && w.starts && w.stops && w.scratch && w.keys && w.offsets;
    if (ready)
        try_walks(&w, part, goal);
    arena_release(context, w.holes);
    arena_release(context, w.starts);
    arena_release(context, w.stops);
    arena_release(context, w.scratch);
    arena_release(context, w.keys);
    arena_release(context, w.offsets);
    return ready ? REMAT_OK : REMAT_NO_MEMORY;
}
