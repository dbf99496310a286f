/* Greedy placement from an order. Two ways to put a tensor down:
 *
 *   on the skyline                      in the lowest gap that holds it
 *        +---+                                 +---+
 *        | n |  <- on top of everything        |   |
 *     +--+---+   it will ever overlap       +--+---+
 *     |  |    hole stays                    |  | n |  <- among the short ones
 *     +--+---                               +--+---+
 *     ======= long-lived floor              ======= long-lived floor
 *
 * The first costs O(log n) and is exact for nested live ranges, where backward
 * releases what forward saved: with the longest first, no moment has a hole.
 * The second takes time in the number of neighbours, so long-lived tensors are
 * placed first as a floor, and only short-lived ones look for gaps. */
#include "arena/arena_internal.h"
#include "base/min_max.h"
#include "base/search.h"

#define GAP_EFFORT        UINT64_C(20000000) /* neighbour visits all gap fits of one pass may take */
#define WHOLE_PART_EFFORT UINT64_C(2000000)  /* under this, more orders are tried */

typedef struct {
    uint64_t from, to;
} span;

typedef struct {
    const arena_part *part;
    uint64_t *whole, *cover; /* skyline tree over moments, node i over 2i, 2i+1 */
    uint32_t leaves, first_moment;
    uint64_t *offsets, *keys;
    uint32_t *order, *scratch;
    bool *placed;
    span *busy;
    uint32_t longest_short; /* in moments; longer ones form the floor */
} skyline;

static uint64_t skyline_top(const skyline *sky, const arena_item *item)
{
    uint32_t left = item->begin - sky->first_moment + sky->leaves;
    uint32_t right = item->end - 1 - sky->first_moment + sky->leaves;
    uint64_t top = 0;
    for (uint32_t up = left / 2; up > 0; up /= 2)
        top = remat_max(top, sky->cover[up]);
    for (uint32_t up = right / 2; up > 0; up /= 2)
        top = remat_max(top, sky->cover[up]);
    for (uint32_t lo = left, hi = right + 1; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2)
            top = remat_max(top, sky->whole[lo++]);
        if (hi % 2)
            top = remat_max(top, sky->whole[--hi]);
    }
    return top;
}

/* Tops only rise, so a covering value never has to be pushed down. */
static void skyline_raise(skyline *sky, const arena_item *item, uint64_t top)
{
    uint32_t left = item->begin - sky->first_moment + sky->leaves;
    uint32_t right = item->end - 1 - sky->first_moment + sky->leaves;
    for (uint32_t lo = left, hi = right + 1; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2) {
            sky->whole[lo] = sky->cover[lo] = top;
            lo++;
        }
        if (hi % 2) {
            hi--;
            sky->whole[hi] = sky->cover[hi] = top;
        }
    }
    for (uint32_t up = left / 2; up > 0; up /= 2)
        sky->whole[up] = remat_max(sky->whole[up], top);
    for (uint32_t up = right / 2; up > 0; up /= 2)
        sky->whole[up] = remat_max(sky->whole[up], top);
}

/* First item of the part (sorted by begin) that begins at this moment or later. */
static uint32_t first_from(const arena_part *part, uint32_t moment)
{
    return (uint32_t)REMAT_FIRST(i, 0, part->count, part->items[i].begin >= moment);
}

static bool is_short(const skyline *sky, const arena_item *item)
{
    return item->end - item->begin <= sky->longest_short;
}

/* Items that can overlap a short one begin less than longest_short before it. */
static uint32_t window_begin(const skyline *sky, const arena_item *item)
{
    uint32_t reach = sky->longest_short;
    return first_from(sky->part, item->begin > reach ? item->begin - reach : 0);
}

static uint64_t gap_cost(const skyline *sky)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < sky->part->count && cost <= GAP_EFFORT; i++) {
        const arena_item *item = &sky->part->items[i];
        if (is_short(sky, item))
            cost += first_from(sky->part, item->end) - window_begin(sky, item);
    }
    return cost;
}

/* Shell sort: in place, and never quadratic on the thousands a long chain has. */
static void sort_spans(span *spans, uint32_t count)
{
    uint32_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (uint32_t i = gap; i < count; i++) {
            span held = spans[i];
            uint32_t at = i;
            for (; at >= gap && spans[at - gap].from > held.from; at -= gap)
                spans[at] = spans[at - gap];
            spans[at] = held;
        }
}

/* Busy address spans of placed short neighbours, sorted by address. */
static uint32_t collect_busy(skyline *sky, const arena_item *item)
{
    uint32_t count = 0, end = first_from(sky->part, item->end);
    for (uint32_t i = window_begin(sky, item); i < end; i++) {
        const arena_item *other = &sky->part->items[i];
        if (!sky->placed[i] || other->end <= item->begin || !is_short(sky, other))
            continue;
        sky->busy[count++] = (span){sky->offsets[i], sky->offsets[i] + other->size};
    }
    sort_spans(sky->busy, count);
    return count;
}

static uint64_t lowest_gap(skyline *sky, const arena_item *item)
{
    uint64_t at = skyline_top(sky, item);
    uint32_t count = collect_busy(sky, item);
    for (uint32_t i = 0; i < count; i++) {
        if (sky->busy[i].from >= at && sky->busy[i].from - at >= item->size)
            break;
        at = remat_max(at, sky->busy[i].to);
    }
    return at;
}

/* Whether the placement is lower than the part's best one; if not, it is not finished. */
static bool place_in_order(skyline *sky)
{
    const arena_part *part = sky->part;
    for (uint32_t i = 0; i < 2 * sky->leaves; i++)
        sky->whole[i] = sky->cover[i] = 0;
    for (uint32_t i = 0; i < part->count; i++)
        sky->placed[i] = false;
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t at = sky->order[i];
        const arena_item *item = &part->items[at];
        if (is_short(sky, item)) {
            sky->offsets[at] = lowest_gap(sky, item);
        } else {
            sky->offsets[at] = skyline_top(sky, item);
            skyline_raise(sky, item, sky->offsets[at] + item->size);
        }
        sky->placed[at] = true;
        if (sky->offsets[at] + item->size >= part->height)
            return false;
    }
    return true;
}

typedef enum { BY_LENGTH, BY_TIME, BY_LOAD, BY_AREA, BY_SIZE, ORDER_COUNT } ordering;

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Borrows the tree: leaf m becomes the load of moment m, whole[] the maxima, so
 * that skyline_top answers with the largest load while an item is live. */
static void fill_tree_with_loads(skyline *sky)
{
    uint32_t leaves = sky->leaves;
    for (uint32_t i = 0; i < 2 * leaves; i++)
        sky->whole[i] = sky->cover[i] = 0;
    for (uint32_t i = 0; i < sky->part->count; i++) {
        const arena_item *item = &sky->part->items[i];
        sky->whole[leaves + item->begin - sky->first_moment] += item->size;
        if (item->end - sky->first_moment < leaves)
            sky->whole[leaves + item->end - sky->first_moment] -= item->size;
    }
    for (uint32_t leaf = leaves + 1; leaf < 2 * leaves; leaf++)
        sky->whole[leaf] += sky->whole[leaf - 1];
    for (uint32_t node = leaves - 1; node > 0; node--)
        sky->whole[node] = remat_max(sky->whole[2 * node], sky->whole[2 * node + 1]);
}

static uint64_t measure_of(const skyline *sky, uint32_t i, ordering kind)
{
    const arena_item *item = &sky->part->items[i];
    switch (kind) {
    case BY_LENGTH: return item->length;
    case BY_TIME: return sky->part->count - i;
    case BY_LOAD: return skyline_top(sky, item);
    case BY_AREA: return saturating_product(item->size, item->length);
    case BY_SIZE: return item->size;
    case ORDER_COUNT: break;
    }
    return 0;
}

static void sort_descending(skyline *sky, ordering kind)
{
    for (uint32_t i = 0; i < sky->part->count; i++)
        sky->keys[i] = UINT64_MAX - measure_of(sky, i, kind);
    arena_sort(sky->order, sky->keys, sky->scratch, sky->part->count);
}

/* Descending by the measure, then by length; the floor goes down before the rest. */
static void make_order(skyline *sky, ordering kind)
{
    const arena_part *part = sky->part;
    for (uint32_t i = 0; i < part->count; i++)
        sky->order[i] = i;
    sort_descending(sky, BY_LENGTH);
    if (kind == BY_LOAD)
        fill_tree_with_loads(sky);
    if (kind != BY_LENGTH)
        sort_descending(sky, kind);
    for (uint32_t i = 0; i < part->count; i++)
        sky->keys[i] = is_short(sky, &part->items[i]);
    arena_sort(sky->order, sky->keys, sky->scratch, part->count);
}

static void keep(arena_part *part, const uint64_t *offsets)
{
    part->height = arena_height_of(part, offsets);
    for (uint32_t i = 0; i < part->count; i++)
        part->offsets[i] = offsets[i];
}

static void try_orders(skyline *sky, arena_part *part, uint64_t goal)
{
    uint32_t moments = sky->leaves;
    for (uint32_t pass = 0; pass < 2; pass++) {
        if (pass == 0)
            sky->longest_short = 0;
        else {
            sky->longest_short = moments;
            while (sky->longest_short > 0 && gap_cost(sky) > GAP_EFFORT)
                sky->longest_short /= 2;
        }
        uint32_t tries = gap_cost(sky) <= WHOLE_PART_EFFORT ? ORDER_COUNT : BY_LOAD + 1;
        for (uint32_t i = 0; i < tries && part->height > goal; i++) {
            make_order(sky, (ordering)i);
            if (place_in_order(sky))
                keep(part, sky->offsets);
        }
    }
}

static uint32_t leaves_for(const arena_part *part)
{
    uint32_t last = 0, leaves = 1;
    for (uint32_t i = 0; i < part->count; i++)
        if (part->items[i].end > last)
            last = part->items[i].end;
    while (leaves < last - part->items[0].begin)
        leaves *= 2;
    return leaves;
}

remat_status arena_skyline(remat_context *context, arena_part *part, uint64_t goal)
{
    skyline sky = {.part = part, .leaves = leaves_for(part), .first_moment = part->items[0].begin};
    sky.whole = arena_array(context, 2 * (size_t)sky.leaves, sizeof *sky.whole);
    sky.cover = arena_array(context, 2 * (size_t)sky.leaves, sizeof *sky.cover);
    sky.offsets = arena_array(context, part->count, sizeof *sky.offsets);
    sky.keys = arena_array(context, part->count, sizeof *sky.keys);
    sky.order = arena_array(context, part->count, sizeof *sky.order);
    sky.scratch = arena_array(context, part->count, sizeof *sky.scratch);
    sky.placed = arena_array(context, part->count, sizeof *sky.placed);
    sky.busy = arena_array(context, part->count, sizeof *sky.busy);
    bool ready =
        sky.whole && sky.cover && sky.offsets && sky.keys && sky.order && sky.scratch && sky.placed && sky.busy;
    if (ready)
        try_orders(&sky, part, goal);
    arena_release(context, sky.whole);
    arena_release(context, sky.cover);
    arena_release(context, sky.offsets);
    arena_release(context, sky.keys);
    arena_release(context, sky.order);
    arena_release(context, sky.scratch);
    arena_release(context, sky.placed);
    arena_release(context, sky.busy);
    return ready ? REMAT_OK : REMAT_NO_MEMORY;
}
