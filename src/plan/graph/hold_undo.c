/* What a change replaced, so that it can be taken back without finding cascades and counting bytes again. */
#include <string.h>

#include "plan/graph/hold_scratch.h"

static bool grow(hold_state *s, void **items, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return true;
    const remat_status status = hold_state_grow(s, items, capacity, needed, size);
    s->scratch->undo.status = status == REMAT_OK ? s->scratch->undo.status : status;
    return status == REMAT_OK;
}

void hold_undo_note(hold_state *s, hold_undo_kind kind, uint32_t index, uint64_t value)
{
    hold_undo *undo = &s->scratch->undo;
    if (!undo->depth || !grow(s, (void **)&undo->entries, &undo->capacity, undo->count + 1, sizeof *undo->entries))
        return;
    undo->entries[undo->count++] = (hold_undo_entry){value, index, kind};
}

void hold_undo_note_cascade(hold_state *s, uint32_t position)
{
    hold_undo *undo = &s->scratch->undo;
    const hold_cascade *cascade = &s->cascades[position];
    if (!undo->depth || !grow(s, (void **)&undo->actions, &undo->action_capacity,
                              undo->action_count + cascade->count + 1, sizeof *undo->actions))
        return;
    if (cascade->count)
        memcpy(undo->actions + undo->action_count, cascade->actions, cascade->count * sizeof *cascade->actions);
    undo->action_count += cascade->count;
    hold_undo_note(s, UNDO_CASCADE, position, cascade->count);
}

void hold_state_mark(hold_state *s, hold_mark *mark)
{
    hold_undo *undo = &s->scratch->undo;
    hold_state_count(s);
    undo->depth++;
    *mark = (hold_mark){undo->count, undo->action_count, s->cost, s->run_count};
}

void hold_state_accept(hold_state *s)
{
    hold_undo *undo = &s->scratch->undo;
    if (--undo->depth == 0)
        undo->count = undo->action_count = 0;
}

static void take_back(hold_state *s, const hold_undo_entry *entry)
{
    hold_undo *undo = &s->scratch->undo;
    switch (entry->kind) {
    case UNDO_FROM: s->from[entry->index] = (uint32_t)entry->value; return;
    case UNDO_HELD_FROM: hold_restore_held_from(s, entry->index, (uint32_t)entry->value); return;
    case UNDO_TAIL: hold_restore_tail(s, entry->index, (uint32_t)(entry->value >> 32), (uint32_t)entry->value); return;
    case UNDO_RUNS: s->cascades[entry->index].runs = entry->value; return;
    case UNDO_EXTRA: s->extra_bytes[entry->index] = (int64_t)entry->value; return;
    case UNDO_CASCADE:
        undo->action_count -= entry->value;
        hold_restore_cascade(s, entry->index, undo->actions + undo->action_count, (uint32_t)entry->value);
        return;
    }
}

/* Bytes that were not counted since the mark need not be: those from before it are right again. */
void hold_state_revert(hold_state *s, const hold_mark *mark)
{
    hold_scratch *k = s->scratch;
    hold_undo *undo = &k->undo;
    s->work += (undo->count - mark->entries) / 2;
    while (undo->count > mark->entries)
        take_back(s, &undo->entries[--undo->count]);
    s->cost = mark->cost;
    s->run_count = mark->run_count;
    while (k->unsettled_count > 0)
        k->is_unsettled[k->unsettled[--k->unsettled_count]] = 0;
    for (uint32_t word = k->lowest_dirty / 64; word <= k->highest_dirty / 64; word++)
        k->dirty[word] = 0;
    k->lowest_dirty = UINT32_MAX;
    k->highest_dirty = 0;
    hold_state_accept(s);
}
