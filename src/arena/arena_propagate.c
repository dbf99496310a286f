/* Derives bounds from the decisions so far.
 *
 * Each waiting item has a lowest possible offset. In a section, all waiting items
 * must be stacked between the lowest of these offsets and the capacity, so:
 *
 *   capacity  ---------------------------------
 *              too high: fails     |  load    |   an item whose offset plus the
 *                                  |  of all  |   section's load passes capacity
 *             offset of x -> x     |  waiting |   cannot be the lowest there, so
 *                                  |          |   it rises to the lowest top of
 *      floor  - - - - - - - - - - -+----------+   those that can be. */
#include "arena/arena_internal.h"

#include "base/search.h"

#include <string.h>

static void mark_sections(arena_model *model, uint32_t first, uint32_t last)
{
    uint32_t from = first / 64, to = last / 64;
    if (from < model->dirty_from)
        model->dirty_from = from;
    if (to >= model->dirty_to)
        model->dirty_to = to + 1;
    uint64_t head = UINT64_MAX << (first % 64), tail = UINT64_MAX >> (63 - last % 64);
    if (from == to) {
        model->dirty[from] |= head & tail;
        return;
    }
    model->dirty[from] |= head;
    for (uint32_t word = from + 1; word < to; word++)
        model->dirty[word] = UINT64_MAX;
    model->dirty[to] |= tail;
}

void arena_mark_all(arena_model *model)
{
    mark_sections(model, 0, model->section_count - 1);
}

static void forget_marks(arena_model *model)
{
    for (uint32_t word = model->dirty_from; word < model->dirty_to; word++)
        model->dirty[word] = 0;
    model->dirty_from = UINT32_MAX;
    model->dirty_to = 0;
}

/* Whatever changes an item's offset or whether it waits, or the figures of a section, calls these. */
static void touch_item(arena_model *model, uint32_t item)
{
    model->item_blocks[item / ARENA_BLOCK].current = false;
}

static void touch_section(arena_model *model, uint32_t section)
{
    model->section_blocks[section / ARENA_BLOCK].current = false;
}

static void set_offset(arena_model *model, uint32_t item, uint64_t offset)
{
    model->offset[item] = offset;
    touch_item(model, item);
    mark_sections(model, model->first[item], model->last[item]);
}

/* False, with out_of_memory set, when the trail cannot grow. */
static bool remember(arena_model *model, uint32_t item, uint64_t old_offset)
{
    if (model->trail_count == model->trail_room) {
        size_t room = model->trail_room == 0 ? 1024 : 2 * model->trail_room;
        arena_step *grown =
            arena_array_grow(model->context, model->trail, model->trail_room * sizeof *grown, room, sizeof *grown);
        if (grown == NULL) {
            model->out_of_memory = true;
            return false;
        }
        model->trail = grown;
        model->trail_room = room;
    }
    model->trail[model->trail_count++] = (arena_step){item, old_offset};
    return true;
}

void arena_raise(arena_model *model, uint32_t item, uint64_t offset)
{
    if (!remember(model, item, model->offset[item]))
        return;
    set_offset(model, item, offset);
    model->fine_steps += 4;
}

/* Insertion sort: the order hardly changes from one look to the next. Where an item moves far, its place is found by
 * halves. */
static void sort_members(arena_model *model, uint32_t *members, uint32_t count)
{
    const uint64_t *offset = model->offset;
    uint64_t highest = offset[members[0]], moves = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t item = members[i], at = i - 1, near = i > 4 ? i - 4 : 0;
        uint64_t wanted = offset[item];
        if (wanted >= highest) {
            highest = wanted;
            continue;
        }
        while (at > near && offset[members[at - 1]] > wanted)
            at--;
        if (at == near)
            at = (uint32_t)REMAT_FIRST(k, 0, at, offset[members[k]] > wanted);
        memmove(members + at + 1, members + at, (i - at) * sizeof *members);
        members[at] = item;
        moves += i - at;
    }
    model->fine_steps += moves + count + 4;
}

/* Stacks members from their lowest offsets up, ignoring all other sections. */
static uint64_t relaxed_top(const arena_model *model, const uint32_t *members, uint32_t count)
{
    uint64_t top = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (model->offset[members[i]] > top)
            top = model->offset[members[i]];
        top += model->part->items[members[i]].size;
    }
    return top;
}

static bool raise_those_not_first(arena_model *model, const uint32_t *members, uint32_t count, uint64_t load)
{
    const arena_item *items = model->part->items;
    uint64_t lowest_top = UINT64_MAX;
    uint32_t i = 0;
    for (; i < count && model->offset[members[i]] + load <= model->capacity; i++) {
        uint64_t top = model->offset[members[i]] + items[members[i]].size;
        if (top < lowest_top)
            lowest_top = top;
    }
    for (; i < count && model->offset[members[i]] < lowest_top; i++) {
        if (lowest_top + items[members[i]].size > model->capacity)
            return false;
        arena_raise(model, members[i], lowest_top);
    }
    return true;
}

static bool look_at_section(arena_model *model, uint32_t section)
{
    uint32_t *members = model->members + model->member_begin[section];
    uint32_t count = model->waiting_count[section];
    uint64_t load = model->load[section];
    if (count == 0)
        return true;
    sort_members(model, members, count);
    model->floor[section] = model->offset[members[0]];
    touch_section(model, section);
    if (model->floor[section] + load > model->capacity)
        return false;
    if (model->offset[members[count - 1]] + load <= model->capacity)
        return true;
    if (relaxed_top(model, members, count) > model->capacity)
        return false;
    return raise_those_not_first(model, members, count, load);
}

static uint32_t lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

/* Looks at marked sections until nothing more follows. On failure the section
 * where it showed is blamed, so that later descents treat its items first. */
bool arena_propagate(arena_model *model)
{
    while (model->dirty_from < model->dirty_to) {
        uint32_t word = model->dirty_from;
        model->dirty_from = UINT32_MAX; /* what is marked behind this pass gets another one */
        for (; word < model->dirty_to; word++)
            while (model->dirty[word] != 0) {
                uint32_t section = 64 * word + lowest_bit(model->dirty[word]);
                model->dirty[word] &= model->dirty[word] - 1;
                if (look_at_section(model, section))
                    continue;
                model->blame[section] += 1000;
                if (word < model->dirty_from)
                    model->dirty_from = word;
                forget_marks(model);
                return false;
            }
    }
    forget_marks(model);
    return !model->out_of_memory;
}

static void stop_waiting(arena_model *model, uint32_t item)
{
    model->waiting[item] = false;
    touch_item(model, item);
    for (uint32_t s = model->first[item]; s <= model->last[item]; s++) {
        uint32_t *members = model->members + model->member_begin[s], at = 0;
        while (members[at] != item)
            at++;
        model->fine_steps += at + 1;
        uint32_t left = --model->waiting_count[s];
        for (; at < left; at++)
            members[at] = members[at + 1];
        model->load[s] -= model->part->items[item].size;
        touch_section(model, s);
    }
    mark_sections(model, model->first[item], model->last[item]);
}

static void return_to_waiting(arena_model *model, uint32_t item)
{
    model->waiting[item] = true;
    touch_item(model, item);
    for (uint32_t s = model->first[item]; s <= model->last[item]; s++) {
        model->members[model->member_begin[s] + model->waiting_count[s]++] = item;
        model->load[s] += model->part->items[item].size;
        touch_section(model, s);
    }
    mark_sections(model, model->first[item], model->last[item]);
}

/* Iterates over waiting items that overlap `item` in time: the members of its
 * first section, then whatever starts in its later ones. */
#define FOR_EACH_NEIGHBOUR(model, item, other, action)                                     \
    do {                                                                                   \
        uint32_t section_ = (model)->first[item];                                          \
        const uint32_t *members_ = (model)->members + (model)->member_begin[section_];     \
        for (uint32_t at_ = 0; at_ < (model)->waiting_count[section_]; at_++) {            \
            uint32_t other = members_[at_];                                                \
            if (other != (item)) {                                                         \
                action                                                                     \
            }                                                                              \
        }                                                                                  \
        uint32_t end_ = (model)->starter_begin[(model)->last[item] + 1];                   \
        for (uint32_t other = (model)->starter_begin[section_ + 1]; other < end_; other++) \
            if ((model)->waiting[other]) {                                                 \
                action                                                                     \
            }                                                                              \
    } while (0)

/* Places the item at its lowest offset; everything it overlaps goes above. */
bool arena_put_down(arena_model *model, uint32_t item)
{
    uint64_t top = model->offset[item] + model->part->items[item].size;
    if (!remember(model, item, ARENA_WAS_WAITING))
        return false;
    stop_waiting(model, item);
    FOR_EACH_NEIGHBOUR(model, item, other, if (model->offset[other] < top) arena_raise(model, other, top););
    return arena_propagate(model);
}

static bool are_twins(const arena_model *model, uint32_t a, uint32_t b)
{
    return model->first[a] == model->first[b] && model->last[a] == model->last[b] &&
           model->part->items[a].size == model->part->items[b].size;
}

/* Items alike in lifetime and size are adjacent, and interchangeable: when one
 * cannot stay, no other at the same offset can. */
static void raise_with_twins(arena_model *model, uint32_t item, uint64_t offset)
{
    uint64_t from = model->offset[item];
    uint32_t begin = item, end = item + 1;
    while (begin > 0 && are_twins(model, begin - 1, item))
        begin--;
    while (end < model->count && are_twins(model, end, item))
        end++;
    for (uint32_t i = begin; i < end; i++)
        if (model->waiting[i] && model->offset[i] == from)
            arena_raise(model, i, offset);
}

/* The item does not stay at its lowest offset. Pushed down as far as it goes it
 * then rests on a waiting neighbour, so it rises to the lowest of their tops. */
bool arena_lift_off(arena_model *model, uint32_t item)
{
    uint64_t lowest_top = UINT64_MAX;
    FOR_EACH_NEIGHBOUR(model, item, other, {
        uint64_t top = model->offset[other] + model->part->items[other].size;
        if (top < lowest_top)
            lowest_top = top;
    });
    if (lowest_top == UINT64_MAX)
        return false;
    if (lowest_top + model->part->items[item].size > model->capacity)
        return false;
    raise_with_twins(model, item, lowest_top);
    return arena_propagate(model);
}

/* True when no waiting neighbour could still be placed under the item. */
bool arena_rests_lowest(const arena_model *model, uint32_t item)
{
    uint64_t offset = model->offset[item];
    FOR_EACH_NEIGHBOUR(model, item, other,
                       if (model->offset[other] + model->part->items[other].size <= offset) return false;);
    return true;
}

static void refresh_floors(arena_model *model)
{
    for (uint32_t word = model->dirty_from; word < model->dirty_to; word++)
        for (; model->dirty[word] != 0; model->dirty[word] &= model->dirty[word] - 1) {
            uint32_t section = 64 * word + lowest_bit(model->dirty[word]);
            const uint32_t *members = model->members + model->member_begin[section];
            uint64_t lowest = UINT64_MAX;
            for (uint32_t i = 0; i < model->waiting_count[section]; i++)
                if (model->offset[members[i]] < lowest)
                    lowest = model->offset[members[i]];
            model->floor[section] = lowest;
            touch_section(model, section);
        }
    forget_marks(model);
}

void arena_undo(arena_model *model, size_t trail_count)
{
    while (model->trail_count > trail_count) {
        arena_step step = model->trail[--model->trail_count];
        if (step.old_offset == ARENA_WAS_WAITING) {
            return_to_waiting(model, step.item);
        } else {
            set_offset(model, step.item, step.old_offset);
        }
    }
    if (model->rule == ARENA_TIGHTEST)
        refresh_floors(model);
    else
        forget_marks(model);
}
