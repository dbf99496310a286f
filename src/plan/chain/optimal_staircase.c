#include "plan/chain/optimal_staircase.h"

#include "base/alloc.h"
#include "base/min_max.h"
#include "base/search.h"

#include <string.h>

/* Products of two figures. Everything here is in integers: the same staircase comes out on every machine. */
__extension__ typedef unsigned __int128 wide;

/* While offers come in, the envelope may hold this many times its limit before it is thinned. */
enum { SLACK = 3 };

/* A gap is wide that is this many times as wide as if the corners were spread evenly. */
enum { WIDE_GAP = 3 };

staircase stairs_nothing(void)
{
    static const uint64_t memory[2] = {0, MEMORY_END}, cost[1] = {0};
    return (staircase){memory, cost, 1};
}

size_t stairs_at(staircase stairs, uint64_t limit)
{
    return REMAT_FIRST(i, 1, stairs.count, stairs.memory[i] > limit) - 1;
}

remat_status envelope_allocate(remat_context *context, size_t most_corners, staircase_envelope *envelope)
{
    *envelope = (staircase_envelope){.capacity = (SLACK + 3) * most_corners + 8};
    uint64_t *block = remat_alloc(context, 6 * envelope->capacity, sizeof *block);
    if (!block)
        return REMAT_NO_MEMORY;
    envelope->memory = block;
    envelope->cost = block + envelope->capacity;
    envelope->other_memory = block + 2 * envelope->capacity;
    envelope->other_cost = block + 3 * envelope->capacity;
    envelope->better_memory = block + 4 * envelope->capacity;
    envelope->better_cost = block + 5 * envelope->capacity;
    return REMAT_OK;
}

void envelope_free(remat_context *context, staircase_envelope *envelope)
{
    /* the six arrays are one block; after swaps its start is the lower of the two */
    uint64_t *block = envelope->memory < envelope->other_memory ? envelope->memory : envelope->other_memory;
    remat_release(context, block, 6 * envelope->capacity, sizeof *block);
    *envelope = (staircase_envelope){0};
}

void envelope_reset(staircase_envelope *envelope, size_t limit, uint64_t memory_cap)
{
    envelope->count = 0;
    envelope->limit = limit;
    envelope->memory_cap = memory_cap;
    envelope->memory[0] = MEMORY_END;
    envelope->thinned = false;
}

uint64_t offer_start(const staircase_offer *offer)
{
    uint64_t start = remat_max(offer->right.memory[0] + offer->right_shift, offer->left.memory[0]);
    return remat_max(start, offer->floor);
}

uint64_t offer_cost_at(const staircase_offer *offer, uint64_t memory)
{
    if (offer->right.count == 0 || offer->left.count == 0 || memory < offer_start(offer))
        return COST_LIMIT;
    return offer->cost + offer->right.cost[stairs_at(offer->right, memory - offer->right_shift)] +
           offer->left.cost[stairs_at(offer->left, memory)];
}

/* The last corner from `from` on with memory <= limit: steps get twice as long each time, then halve. */
static inline size_t advance(staircase stairs, size_t from, uint64_t limit)
{
    size_t step = 1, low = from;
    while (low + step < stairs.count && stairs.memory[low + step] <= limit) {
        low += step;
        step *= 2;
    }
    return REMAT_FIRST(i, low + 1, remat_min(low + step, stairs.count), stairs.memory[i] > limit) - 1;
}

/* Where a comparison of an offer with the envelope stands. */
typedef struct walk_place {
    size_t right, left, found; /* corners of the offer in force; improvements so far */
} walk_place;

/* Whether a corner is worth taking where envelope corner e - 1 is in force and dearer. Once thinned, the envelope
 * misses corners in every gap; filling them with corners above the line between its own would be work for
 * nothing, but for gaps much wider than thinning makes them. */
static bool below_line(const staircase_envelope *envelope, size_t e, uint64_t memory, uint64_t cost)
{
    if (!envelope->thinned || envelope->round_down || e == envelope->count)
        return true;
    uint64_t run = envelope->memory[e] - envelope->memory[e - 1], along = memory - envelope->memory[e - 1];
    uint64_t range = envelope->memory[envelope->count - 1] - envelope->memory[0];
    if ((wide)run * envelope->limit > (wide)range * WIDE_GAP)
        return true;
    uint64_t fall = envelope->cost[e - 1] - envelope->cost[e];
    return (wide)(envelope->cost[e - 1] - cost) * run > (wide)along * fall;
}

/* Walks the offer's corners in [memory, end) beside the envelope's from e on; collects those below it. */
static void walk(staircase_envelope *envelope, const staircase_offer *offer, walk_place *place, uint64_t memory,
                 uint64_t end, size_t e)
{
    const uint64_t shift = offer->right_shift;
    size_t r = advance(offer->right, place->right, memory - shift);
    size_t l = advance(offer->left, place->left, memory);
    const uint64_t *right_memory = offer->right.memory + 1, *left_memory = offer->left.memory + 1;
    size_t found = place->found;
    uint64_t envelope_cost = COST_LIMIT;
    for (;;) {
        uint64_t cost = offer->cost + offer->right.cost[r] + offer->left.cost[l];
        for (; envelope->memory[e] <= memory; e++)
            envelope_cost = envelope->cost[e];
        if (cost < envelope_cost && (e == 0 || below_line(envelope, e, memory, cost))) {
            envelope->better_memory[found] = memory;
            envelope->better_cost[found++] = cost;
        }
        uint64_t next_right = right_memory[r] + shift, next_left = left_memory[l];
        memory = remat_min(next_right, next_left);
        if (memory >= end)
            break;
        r += next_right == memory;
        l += next_left == memory;
    }
    *place = (walk_place){r, l, found};
}

enum { SHORT_BLOCK = 6 };

/* Compares block by block: where the offer at the end of a block is no cheaper than the envelope at its start,
 * nothing in between is. Blocks get twice as long while that holds, and halve where it does not. */
static size_t collect_better(staircase_envelope *envelope, const staircase_offer *offer, uint64_t start)
{
    const uint64_t limit = envelope->memory_cap + 1, *memory = envelope->memory;
    staircase mine = {memory, envelope->cost, (uint32_t)envelope->count};
    walk_place place = {0};
    size_t e = 0, block = SHORT_BLOCK;
    uint64_t cheapest =
        offer->cost + offer->right.cost[offer->right.count - 1] + offer->left.cost[offer->left.count - 1];
    if (envelope->count == 0 || start < memory[0])
        walk(envelope, offer, &place, start, envelope->count && memory[0] < limit ? memory[0] : limit, 0);
    else
        e = stairs_at(mine, start);
    while (e < envelope->count && cheapest < envelope->cost[e]) {
        size_t behind = remat_min(e + block, envelope->count);
        uint64_t end = remat_min(memory[behind], limit), from = remat_max(memory[e], start);
        size_t r = advance(offer->right, place.right, end - 1 - offer->right_shift);
        size_t l = advance(offer->left, place.left, end - 1);
        if (offer->cost + offer->right.cost[r] + offer->left.cost[l] >= envelope->cost[e]) {
            place.right = r;
            place.left = l;
            block *= 2;
        } else if (block > SHORT_BLOCK) {
            block /= 2;
            continue;
        } else
            walk(envelope, offer, &place, from, end, e);
        e = behind;
    }
    envelope->better_memory[place.found] = MEMORY_END;
    return place.found;
}

/* Merges the improvements in; a corner that does not fall below the one before it goes. */
static void merge_better(staircase_envelope *envelope, size_t found)
{
    const uint64_t *am = envelope->memory, *ac = envelope->cost;
    const uint64_t *bm = envelope->better_memory, *bc = envelope->better_cost;
    uint64_t *memory = envelope->other_memory, *cost = envelope->other_cost;
    size_t a = 0, b = 0, count = 0, na = envelope->count;
    uint64_t last = COST_LIMIT;
    while (a < na || b < found) {
        bool take_b = bm[b] < am[a] || (bm[b] == am[a] && bc[b] <= ac[a]);
        uint64_t m = take_b ? bm[b] : am[a], c = take_b ? bc[b] : ac[a];
        b += take_b;
        a += !take_b;
        memory[count] = m;
        cost[count] = c;
        count += c < last;
        last = remat_min(c, last);
    }
    memory[count] = MEMORY_END;
    envelope->count = count;
    envelope->other_memory = envelope->memory;
    envelope->other_cost = envelope->cost;
    envelope->memory = memory;
    envelope->cost = cost;
}

/* Where a corner lies along the staircase: seven tenths by memory, three by cost (finer where it is steep). Slots are
 * counted in units of 2^-32; shifts bring either range below 2^31, so that products fit. */
typedef struct slot_ruler {
    uint64_t first_memory, first_cost;
    uint64_t per_memory, per_cost;
    unsigned memory_shift, cost_shift;
} slot_ruler;

static unsigned shift_below_2_31(uint64_t range)
{
    return remat_bits(range) > 31 ? remat_bits(range) - 31 : 0;
}

static slot_ruler make_ruler(const staircase_envelope *envelope, uint64_t slots)
{
    size_t last = envelope->count - 1;
    uint64_t memory = envelope->memory[last] - envelope->memory[0], cost = envelope->cost[0] - envelope->cost[last];
    slot_ruler ruler = {.first_memory = envelope->memory[0], .first_cost = envelope->cost[0]};
    ruler.memory_shift = shift_below_2_31(memory);
    ruler.cost_shift = shift_below_2_31(cost);
    ruler.per_memory = (slots * 7 << 32) / 10 / (memory >> ruler.memory_shift);
    ruler.per_cost = (slots * 3 << 32) / 10 / (cost >> ruler.cost_shift);
    return ruler;
}

static size_t slot_of(const staircase_envelope *envelope, const slot_ruler *ruler, size_t k)
{
    uint64_t memory = (envelope->memory[k] - ruler->first_memory) >> ruler->memory_shift;
    uint64_t cost = (ruler->first_cost - envelope->cost[k]) >> ruler->cost_shift;
    return (size_t)((memory * ruler->per_memory + cost * ruler->per_cost) >> 32);
}

/* Of corners first..end-1 the one furthest below the line through first and end. */
static size_t deepest(const staircase_envelope *envelope, size_t first, size_t end)
{
    size_t behind = end < envelope->count ? end : end - 1;
    uint64_t run = envelope->memory[behind] - envelope->memory[first];
    uint64_t fall = envelope->cost[first] - envelope->cost[behind];
    wide best = 0;
    size_t chosen = first;
    for (size_t k = first + 1; k < end; k++) {
        wide fallen = (wide)(envelope->cost[first] - envelope->cost[k]) * run;
        wide line = (wide)(envelope->memory[k] - envelope->memory[first]) * fall;
        if (fallen > line && fallen - line > best) {
            best = fallen - line;
            chosen = k;
        }
    }
    return chosen;
}

static void copy_corner(staircase_envelope *envelope, size_t to, size_t from)
{
    envelope->memory[to] = envelope->memory[from];
    envelope->cost[to] = envelope->cost[from];
}

/* Keeps at most limit corners, exactly as they are: the first, the last, and the deepest of every slot.
 * Where it rounds down, slots are never cut off: a corner too many is better than a wrong bound. */
static void thin(staircase_envelope *envelope, size_t limit)
{
    size_t count = envelope->count, kept = 1, first = 1;
    if (count <= limit || limit < 4)
        return;
    envelope->thinned = true;
    slot_ruler ruler = make_ruler(envelope, limit - 3);
    while (first < count - 1 && (kept < limit - 1 || envelope->round_down)) {
        size_t slot = slot_of(envelope, &ruler, first), end = first + 1;
        while (end < count - 1 && slot_of(envelope, &ruler, end) == slot)
            end++;
        if (envelope->round_down) { /* at most as much memory and cost as any corner of the slot */
            envelope->memory[kept] = envelope->memory[first];
            envelope->cost[kept++] = envelope->cost[end - 1];
        } else
            copy_corner(envelope, kept++, deepest(envelope, first, end));
        first = end;
    }
    copy_corner(envelope, kept++, count - 1);
    envelope->memory[kept] = MEMORY_END;
    envelope->count = kept;
}

void envelope_offer(staircase_envelope *envelope, const staircase_offer *offer)
{
    if (offer->right.count == 0 || offer->left.count == 0)
        return;
    uint64_t start = offer_start(offer);
    if (start > envelope->memory_cap)
        return;
    size_t found = collect_better(envelope, offer, start);
    if (found == 0)
        return;
    merge_better(envelope, found);
    if (envelope->count > SLACK * envelope->limit)
        thin(envelope, 2 * envelope->limit);
}

void envelope_finish(staircase_envelope *envelope)
{
    thin(envelope, envelope->limit);
}

staircase envelope_copy(const staircase_envelope *envelope, uint64_t *words)
{
    size_t count = envelope->count;
    memcpy(words, envelope->memory, (count + 1) * sizeof *words);
    memcpy(words + count + 1, envelope->cost, count * sizeof *words);
    return (staircase){words, words + count + 1, (uint32_t)count};
}

void envelope_keep_below(staircase_envelope *envelope, const staircase_offer *offer)
{
    size_t kept = 0;
    for (size_t k = 0; k < envelope->count; k++)
        if (envelope->cost[k] < offer_cost_at(offer, envelope->memory[k]))
            copy_corner(envelope, kept++, k);
    envelope->memory[kept] = MEMORY_END;
    envelope->count = kept;
}
