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

/* Whether a whole block begins at this index of a component. */
static bool is_block(uint32_t begin, uint32_t end)
{
    return begin % ARENA_BLOCK == 0 && end - begin >= ARENA_BLOCK;
}

/* A sum, so that the order of items does not matter; 128 bits, so that two
 * states are never confused in practice. */
static void hash_component(arena_model *model, arena_frame *frame)
{
    uint64_t hash[2] = {model->hash_seed, 0};
    for (uint32_t i = frame->begin; i < frame->end;) {
        if (is_block(i, frame->end)) {
            const arena_item_block *block = arena_items_at(model, i);
            hash[0] += block->hash[0];
            hash[1] += block->hash[1];
            i += ARENA_BLOCK;
            continue;
        }
        if (model->waiting[i])
            arena_hash_item(model, i, hash);
        i++;
    }
    frame->state[0] = hash[0];
    frame->state[1] = hash[1] | 1; /* never the empty entry */
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

static uint32_t choose_lowest(arena_model *model, const arena_frame *frame)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = frame->begin; i < frame->end;) {
        bool whole = is_block(i, frame->end);
        uint32_t item = whole ? arena_items_at(model, i)->lowest : model->waiting[i] ? i : UINT32_MAX;
        if (item != UINT32_MAX && arena_goes_before(model, item, best))
            best = item;
        i += whole ? ARENA_BLOCK : 1;
    }
    return best;
}

static uint32_t last_section(arena_model *model, const arena_frame *frame)
{
    uint32_t last = 0;
    for (uint32_t i = frame->begin; i < frame->end;) {
        bool whole = is_block(i, frame->end);
        uint32_t reach = whole ? arena_items_at(model, i)->reach : model->waiting[i] ? model->last[i] : 0;
        last = reach > last ? reach : last;
        i += whole ? ARENA_BLOCK : 1;
    }
    return last;
}

static uint32_t tightest_section(arena_model *model, const arena_frame *frame)
{
    uint32_t best = UINT32_MAX, end = last_section(model, frame) + 1;
    for (uint32_t s = model->first[frame->begin]; s < end;) {
        bool whole = is_block(s, end);
        uint32_t section = whole ? arena_tightest_at(model, s) : model->waiting_count[s] != 0 ? s : UINT32_MAX;
        if (section != UINT32_MAX && arena_is_tighter(model, section, best))
            best = section;
        s += whole ? ARENA_BLOCK : 1;
    }
    return best;
}

static uint32_t choose_tightest(arena_model *model, const arena_frame *frame)
{
    uint32_t section = tightest_section(model, frame), best = UINT32_MAX;
    const uint32_t *members = model->members + model->member_begin[section];
    for (uint32_t i = 0; i < model->waiting_count[section]; i++)
        if (arena_goes_before(model, members[i], best) && arena_rests_lowest(model, members[i]))
            best = members[i];
    return best != UINT32_MAX ? best : choose_lowest(model, frame);
}

/* The next piece of the frame's component at or after its cursor. Items are sorted by their first section, so a block
 * whose last waiting item begins within the piece belongs to it as a whole. */
static bool next_piece(arena_model *model, const arena_frame *frame, arena_frame *piece)
{
    uint32_t i = frame->cursor, reach = 0;
    bool open = false;
    while (i < frame->end) {
        if (is_block(i, frame->end)) {
            const arena_item_block *block = arena_items_at(model, i);
            bool inside = block->end != 0 && open && model->first[block->end - 1] <= reach;
            if (inside) {
                reach = block->reach > reach ? block->reach : reach;
                piece->end = block->end;
            }
            if (inside || block->end == 0) {
                i += ARENA_BLOCK;
                continue;
            }
        }
        if (model->waiting[i]) {
            if (!open)
                piece->begin = i;
            else if (model->first[i] > reach)
                break;
            open = true;
            reach = model->last[i] > reach ? model->last[i] : reach;
            piece->end = i + 1;
        }
        i++;
    }
    return open;
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
