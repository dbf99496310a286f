/* Depth-first search with an explicit stack.
 *
 * A node takes a component (waiting items connected in time), picks an item
 * that no other item can be below, and decides: the item stays at its lowest
 * offset, or it rises. Both decisions only raise lowest offsets, so these offsets
 * are the whole state. A component that failed is remembered by their hash and
 * not searched a second time, however it is reached.
 *
 * Placing an item may cut its component; the pieces are independent:
 *
 *       |  left  |####|  right  |     when right fails there is no point in
 *       +--------+item+---------+     another solution of left: the decision
 *       ========== placed =======     on the item itself is undone at once. */
#include "arena/arena_internal.h"

#define FINE_STEPS_PER_NODE 4096u /* a node that does a lot of work counts as several */

uint64_t arena_effort(const arena_model *model)
{
    return model->nodes + model->fine_steps / FINE_STEPS_PER_NODE;
}

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A sum, so that the order of items does not matter; 128 bits, so that two
 * states are never confused in practice. */
static void hash_component(const arena_model *model, arena_frame *frame)
{
    uint64_t low = model->hash_seed, high = 0;
    for (uint32_t i = frame->begin; i < frame->end; i++) {
        if (!model->waiting[i])
            continue;
        uint64_t mixed = scramble(i * UINT64_C(0x9e3779b97f4a7c15) + model->hash_seed +
                                  model->offset[i] * UINT64_C(0xd6e8feb86659fd93));
        low += mixed;
        high += (mixed ^ (mixed >> 32)) * UINT64_C(0xff51afd7ed558ccd);
    }
    frame->state[0] = low;
    frame->state[1] = high | 1; /* never the empty entry */
}

static uint64_t *failed_entry(arena_model *model, const arena_frame *frame)
{
    return model->failed[frame->state[0] >> (64 - ARENA_FAILED_BITS)];
}

static bool known_to_fail(arena_model *model, const arena_frame *frame)
{
    const uint64_t *entry = failed_entry(model, frame);
    return entry[0] == frame->state[0] && entry[1] == frame->state[1];
}

static void remember_failure(arena_model *model, const arena_frame *frame)
{
    uint64_t *entry = failed_entry(model, frame);
    entry[0] = frame->state[0];
    entry[1] = frame->state[1];
}

static bool goes_before(const arena_model *model, uint32_t item, uint32_t best)
{
    if (best == UINT32_MAX || model->offset[item] < model->offset[best])
        return true;
    return model->offset[item] == model->offset[best] && model->preference[item] > model->preference[best];
}

static uint32_t choose_lowest(const arena_model *model, const arena_frame *frame)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = frame->begin; i < frame->end; i++)
        if (model->waiting[i] && goes_before(model, i, best))
            best = i;
    return best;
}

/* Least room to spare; among equals the lowest floor. */
static uint32_t tightest_section(const arena_model *model, const arena_frame *frame)
{
    uint32_t last = 0, best = UINT32_MAX;
    uint64_t best_slack = 0;
    for (uint32_t i = frame->begin; i < frame->end; i++)
        if (model->waiting[i] && model->last[i] > last)
            last = model->last[i];
    for (uint32_t s = model->first[frame->begin]; s <= last; s++) {
        if (model->waiting_count[s] == 0)
            continue;
        uint64_t slack = model->capacity - model->floor[s] - model->load[s];
        if (best != UINT32_MAX && slack > best_slack)
            continue;
        if (best != UINT32_MAX && slack == best_slack && model->floor[s] >= model->floor[best])
            continue;
        best = s;
        best_slack = slack;
    }
    return best;
}

static uint32_t choose_tightest(const arena_model *model, const arena_frame *frame)
{
    uint32_t section = tightest_section(model, frame), best = UINT32_MAX;
    const uint32_t *members = model->members + model->member_begin[section];
    for (uint32_t i = 0; i < model->waiting_count[section]; i++)
        if (goes_before(model, members[i], best) && arena_rests_lowest(model, members[i]))
            best = members[i];
    return best != UINT32_MAX ? best : choose_lowest(model, frame);
}

/* The next piece of the frame's component at or after its cursor. */
static bool next_piece(const arena_model *model, const arena_frame *frame, arena_frame *piece)
{
    uint32_t i = frame->cursor;
    while (i < frame->end && !model->waiting[i])
        i++;
    if (i == frame->end)
        return false;
    uint32_t reach = model->last[i];
    piece->begin = i;
    for (; i < frame->end; i++) {
        if (!model->waiting[i])
            continue;
        if (model->first[i] > reach)
            break;
        if (model->last[i] > reach)
            reach = model->last[i];
        piece->end = i + 1;
    }
    return true;
}

typedef enum { OPEN_NEXT, TRY_ITEM, TAKE_BACK, SOLVED, REFUTED } move;

/* Solved pieces are popped for good: their placement stays on the trail. */
static move open_next(arena_model *model, size_t *depth)
{
    arena_frame *frame = &model->frames[*depth], *piece = frame + 1;
    if (!next_piece(model, frame, piece)) {
        if (*depth == 0)
            return SOLVED;
        (*depth)--;
        return OPEN_NEXT;
    }
    frame->cursor = piece->end;
    hash_component(model, piece);
    if (known_to_fail(model, piece))
        return TAKE_BACK;
    piece->entered = model->trail_count;
    (*depth)++;
    return TRY_ITEM;
}

static move try_item(arena_model *model, arena_frame *frame)
{
    model->nodes++;
    frame->item = model->rule == ARENA_TIGHTEST ? choose_tightest(model, frame) : choose_lowest(model, frame);
    frame->tried = model->trail_count;
    frame->cursor = frame->begin;
    model->fine_steps += frame->end - frame->begin;
    return arena_put_down(model, frame->item) ? OPEN_NEXT : TAKE_BACK;
}

static move take_back(arena_model *model, size_t *depth)
{
    arena_frame *frame = &model->frames[*depth];
    if (*depth == 0)
        return REFUTED;
    arena_undo(model, frame->tried);
    if (arena_lift_off(model, frame->item))
        return TRY_ITEM;
    arena_undo(model, frame->entered);
    remember_failure(model, frame);
    (*depth)--;
    return TAKE_BACK;
}

arena_outcome arena_descend(arena_model *model, uint64_t effort_limit)
{
    size_t depth = 0;
    move next = OPEN_NEXT;
    uint64_t stop_at = arena_effort(model) + effort_limit;
    model->frames[0] = (arena_frame){.begin = 0, .end = model->count};
    for (;;) {
        if (model->out_of_memory)
            return ARENA_FAILED_ALLOC;
        if (arena_effort(model) > stop_at)
            return ARENA_UNDECIDED;
        switch (next) {
        case OPEN_NEXT: next = open_next(model, &depth); break;
        case TRY_ITEM: next = try_item(model, &model->frames[depth]); break;
        case TAKE_BACK: next = take_back(model, &depth); break;
        case SOLVED: return ARENA_FOUND;
        case REFUTED: return ARENA_IMPOSSIBLE;
        }
    }
}
