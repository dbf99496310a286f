#include "plan/graph/hold_state.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/hold_scratch.h"

remat_status hold_state_grow(hold_state *s, void **items, size_t *capacity, size_t needed, size_t size)
{
    if (s->lock)
        pthread_mutex_lock(s->lock);
    remat_status status = remat_grow(s->g->graph->context, items, capacity, needed, size);
    if (s->lock)
        pthread_mutex_unlock(s->lock);
    return status;
}

/* ---- decisions ---- */

/* Finding some cascades again is in the price of a change. A tensor that much of a net reads, such as a mask, takes many. */
enum { USUAL_DIRTY = 512, DIRTY_WORK = 8 };

void hold_state_note(hold_state *s, uint32_t number, uint32_t from)
{
    const hold_gap *gap = &s->g->gaps[number];
    if (s->from[number] == from)
        return;
    hold_undo_note(s, UNDO_FROM, number, s->from[number]);
    s->from[number] = from;
    if (s->held_from[number] < from && s->held_from[number] != gap->begin)
        hold_set_held_from(s, number, gap->end);
    hold_mark_dirty(s, gap->begin);
    hold_mark_touches(s, gap->tensor, gap->begin, gap->end == HOLD_TAIL ? HOLD_TAIL : gap->end - 1);
}

remat_status hold_state_settle(hold_state *s)
{
    hold_scratch *k = s->scratch;
    uint64_t found = 0;
    for (uint32_t word = k->lowest_dirty / 64; word <= k->highest_dirty / 64; word++)
        while (k->dirty[word]) {
            uint32_t position = word * 64 + (uint32_t)__builtin_ctzll(k->dirty[word]);
            k->dirty[word] &= k->dirty[word] - 1;
            REMAT_TRY(hold_find_cascade(s, position));
            found++;
        }
    s->work += found > USUAL_DIRTY ? found * DIRTY_WORK : 0;
    k->lowest_dirty = UINT32_MAX;
    k->highest_dirty = 0;
    return k->undo.status;
}

void hold_state_count(hold_state *s)
{
    hold_scratch *k = s->scratch;
    while (k->unsettled_count > 0) {
        const uint32_t position = k->unsettled[--k->unsettled_count];
        k->is_unsettled[position] = 0;
        hold_undo_note(s, UNDO_EXTRA, position, (uint64_t)s->extra_bytes[position]);
        hold_count_bytes(s, position);
    }
}

uint64_t hold_state_peak(hold_state *s, uint64_t limit, unsigned shift, uint64_t *over, uint32_t *position)
{
    hold_state_count(s);
    uint64_t peak = 0, sum = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->g->position_count; i++) {
        uint64_t now = s->held_bytes[i] + (uint64_t)s->extra_bytes[i];
        sum += now > limit ? (now - limit) >> shift : 0;
        at = now > peak ? i : at;
        peak = now > peak ? now : peak;
    }
    *over = sum;
    *position = at;
    return peak;
}

remat_status hold_state_sequence(const hold_state *s, graph_sequence *sequence)
{
    remat_context *context = s->g->graph->context;
    REMAT_TRY(
        remat_grow(context, (void **)&sequence->actions, &sequence->capacity, s->run_count, sizeof *sequence->actions));
    for (uint32_t i = 0; i < s->g->position_count; i++) {
        const hold_cascade *cascade = &s->cascades[i];
        if (cascade->count)
            memcpy(sequence->actions + sequence->count, cascade->actions, cascade->count * sizeof *cascade->actions);
        sequence->count += cascade->count;
        if (cascade->runs && i < s->g->action_count)
            sequence->actions[sequence->count++] = i;
    }
    return REMAT_OK;
}

/* ---- making and releasing ---- */

typedef enum array_of { BY_GAP, BY_POSITION, BY_TENSOR } array_of;
typedef struct state_array {
    size_t offset, size;
    array_of of;
} state_array;
#define STATE(field, of)                                                  \
    {                                                                     \
        offsetof(hold_state, field), sizeof *((hold_state *)0)->field, of \
    }
#define SCRATCH(field, of)                                                    \
    {                                                                         \
        offsetof(hold_scratch, field), sizeof *((hold_scratch *)0)->field, of \
    }
static const state_array of_state[] = {STATE(from, BY_GAP),
                                       STATE(held_from, BY_GAP),
                                       STATE(cascades, BY_POSITION),
                                       STATE(held_bytes, BY_POSITION),
                                       STATE(extra_bytes, BY_POSITION),
                                       STATE(touches, BY_TENSOR),
                                       STATE(tail_from, BY_TENSOR),
                                       STATE(tail_to, BY_TENSOR)};
static const state_array of_scratch[] = {
    SCRATCH(dirty, BY_POSITION), SCRATCH(unsettled, BY_POSITION), SCRATCH(is_unsettled, BY_POSITION),
    SCRATCH(made, BY_TENSOR),    SCRATCH(seen, BY_TENSOR),        SCRATCH(last, BY_TENSOR),
    SCRATCH(alive, BY_TENSOR),   SCRATCH(stack, BY_POSITION),     SCRATCH(listed, BY_POSITION)};
enum { STATE_ARRAYS = sizeof of_state / sizeof *of_state, SCRATCH_ARRAYS = sizeof of_scratch / sizeof *of_scratch };

static size_t array_count(const hold_graph *g, array_of of)
{
    return of == BY_GAP ? g->gap_count : of == BY_POSITION ? g->position_count : g->tensor_count;
}

/* All are zero at first. */
static remat_status allocate_arrays(const hold_graph *g, void *object, const state_array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *made = remat_alloc_zeroed(g->graph->context, array_count(g, arrays[i].of), arrays[i].size);
        if (!made)
            return REMAT_NO_MEMORY;
        memcpy((char *)object + arrays[i].offset, &made, sizeof made);
    }
    return REMAT_OK;
}

static void release_arrays(const hold_graph *g, void *object, const state_array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *made;
        memcpy(&made, (char *)object + arrays[i].offset, sizeof made);
        remat_release(g->graph->context, made, array_count(g, arrays[i].of), arrays[i].size);
    }
}

void hold_state_release(hold_state *s)
{
    if (!s->g)
        return;
    const hold_graph *g = s->g;
    remat_context *context = g->graph->context;
    for (uint32_t i = 0; s->cascades && i < g->position_count; i++)
        remat_release(context, s->cascades[i].actions, s->cascades[i].capacity, sizeof *s->cascades[i].actions);
    for (uint32_t t = 0; s->touches && t < g->tensor_count; t++)
        remat_release(context, s->touches[t].positions, s->touches[t].capacity, sizeof *s->touches[t].positions);
    release_arrays(g, s, of_state, STATE_ARRAYS);
    if (s->scratch) {
        hold_undo *undo = &s->scratch->undo;
        remat_release(context, undo->entries, undo->capacity, sizeof *undo->entries);
        remat_release(context, undo->actions, undo->action_capacity, sizeof *undo->actions);
        release_arrays(g, s->scratch, of_scratch, SCRATCH_ARRAYS);
    }
    remat_release(context, s->scratch, 1, sizeof *s->scratch);
    *s = (hold_state){0};
}

static remat_status allocate(hold_state *s)
{
    s->scratch = remat_alloc_zeroed(s->g->graph->context, 1, sizeof *s->scratch);
    if (!s->scratch)
        return REMAT_NO_MEMORY;
    REMAT_TRY(allocate_arrays(s->g, s, of_state, STATE_ARRAYS));
    return allocate_arrays(s->g, s->scratch, of_scratch, SCRATCH_ARRAYS);
}

remat_status hold_state_create(const hold_graph *g, hold_state *s)
{
    *s = (hold_state){.g = g};
    remat_status status = allocate(s);
    if (status == REMAT_OK) {
        for (uint32_t i = 0; i < g->position_count; i++)
            s->held_bytes[i] = g->fixed_bytes[i] + g->given_bytes;
        for (uint32_t i = 0; i < g->gap_count; i++) {
            s->from[i] = g->gaps[i].begin + (g->gaps[i].end == HOLD_TAIL);
            s->held_from[i] = g->gaps[i].end;
        }
        for (uint32_t t = 0; t < g->tensor_count; t++)
            s->tail_from[t] = s->tail_to[t] = g->tensors[t].maker == GRAPH_NONE ? g->tensors[t].last_use : HOLD_TAIL;
        s->scratch->lowest_dirty = UINT32_MAX;
        for (uint32_t i = 0; i < g->position_count; i++)
            hold_mark_dirty(s, i);
        status = hold_state_settle(s);
    }
    if (status != REMAT_OK)
        hold_state_release(s);
    return status;
}
