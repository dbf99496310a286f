/* Builds the section view of a part (see arena_internal.h). */
#include "arena/arena_internal.h"

#define MOST_MEMBERSHIPS ((size_t)4 << 20) /* past this a search would be hopeless anyway */

enum { STARTS = 1, STOPS = 2 };

/* closed[m]: how many sections are complete at moment m. A section closes when
 * something stops after something has started: only then was the set maximal. */
static uint32_t *close_sections(remat_context *context, const arena_part *part)
{
    uint32_t base = part->items[0].begin, last = base, sections = 0;
    for (uint32_t i = 0; i < part->count; i++)
        if (part->items[i].end > last)
            last = part->items[i].end;
    uint32_t *closed = arena_array(context, (size_t)(last - base) + 1, sizeof *closed);
    if (closed == NULL)
        return NULL;
    for (uint32_t m = 0; m <= last - base; m++)
        closed[m] = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        closed[part->items[i].begin - base] |= STARTS;
        closed[part->items[i].end - base] |= STOPS;
    }
    bool growing = false;
    for (uint32_t m = 0; m <= last - base; m++) {
        uint32_t events = closed[m];
        if ((events & STOPS) && growing) {
            sections++;
            growing = false;
        }
        if (events & STARTS)
            growing = true;
        closed[m] = sections;
    }
    return closed;
}

static size_t find_sections(arena_model *model, const uint32_t *closed)
{
    const arena_part *part = model->part;
    uint32_t base = part->items[0].begin;
    size_t memberships = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        model->first[i] = closed[part->items[i].begin - base];
        model->last[i] = closed[part->items[i].end - base] - 1;
        memberships += model->last[i] - model->first[i] + 1;
        if (model->last[i] + 1 > model->section_count)
            model->section_count = model->last[i] + 1;
    }
    return memberships;
}

static bool allocate_items(arena_model *model)
{
    remat_context *a = model->context;
    model->first = arena_array(a, model->count, sizeof *model->first);
    model->last = arena_array(a, model->count, sizeof *model->last);
    model->offset = arena_array(a, model->count, sizeof *model->offset);
    model->waiting = arena_array(a, model->count, sizeof *model->waiting);
    model->preference = arena_array(a, model->count, sizeof *model->preference);
    model->frames = arena_array(a, (size_t)model->count + 1, sizeof *model->frames);
    model->failed = arena_array(a, (size_t)1 << ARENA_FAILED_BITS, sizeof *model->failed);
    model->item_blocks = arena_array(a, model->count / ARENA_BLOCK + 1, sizeof *model->item_blocks);
    return model->first && model->last && model->offset && model->waiting && model->preference && model->frames &&
           model->failed && model->item_blocks;
}

static bool allocate_sections(arena_model *model, size_t memberships)
{
    remat_context *a = model->context;
    size_t sections = model->section_count;
    model->member_begin = arena_array(a, sections + 1, sizeof *model->member_begin);
    model->members = arena_array(a, memberships, sizeof *model->members);
    model->waiting_count = arena_array(a, sections, sizeof *model->waiting_count);
    model->starter_begin = arena_array(a, sections + 1, sizeof *model->starter_begin);
    model->load = arena_array(a, sections, sizeof *model->load);
    model->full_load = arena_array(a, sections, sizeof *model->full_load);
    model->floor = arena_array(a, sections, sizeof *model->floor);
    model->blame = arena_array(a, sections, sizeof *model->blame);
    model->dirty = arena_array(a, sections / 64 + 1, sizeof *model->dirty);
    model->section_blocks = arena_array(a, sections / ARENA_BLOCK + 1, sizeof *model->section_blocks);
    return model->member_begin && model->members && model->waiting_count && model->starter_begin && model->load &&
           model->full_load && model->floor && model->blame && model->dirty && model->section_blocks;
}

static void count_members(arena_model *model)
{
    for (uint32_t s = 0; s < model->section_count; s++) {
        model->waiting_count[s] = 0;
        model->load[s] = 0;
        model->floor[s] = 0;
        model->blame[s] = 0;
        model->starter_begin[s] = 0;
    }
    for (uint32_t i = 0; i < model->count; i++)
        for (uint32_t s = model->first[i]; s <= model->last[i]; s++) {
            model->waiting_count[s]++;
            model->load[s] += model->part->items[i].size;
        }
    uint32_t at = 0;
    for (uint32_t s = 0; s < model->section_count; s++) {
        model->full_load[s] = model->load[s];
        model->member_begin[s] = at;
        at += model->waiting_count[s];
        model->waiting_count[s] = 0;
    }
    model->member_begin[model->section_count] = at;
}

static void fill_members(arena_model *model)
{
    uint32_t section = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        model->offset[i] = 0;
        model->waiting[i] = true;
        for (uint32_t s = model->first[i]; s <= model->last[i]; s++)
            model->members[model->member_begin[s] + model->waiting_count[s]++] = i;
        while (section <= model->first[i])
            model->starter_begin[section++] = i;
    }
    while (section <= model->section_count)
        model->starter_begin[section++] = model->count;
    for (uint32_t word = 0; word <= model->section_count / 64; word++)
        model->dirty[word] = 0;
    for (size_t i = 0; i < (size_t)1 << ARENA_FAILED_BITS; i++)
        model->failed[i][0] = model->failed[i][1] = 0;
}

void arena_model_destroy(arena_model *model)
{
    if (model == NULL)
        return;
    remat_context *a = model->context;
    void *blocks[] = {model->first,         model->last,         model->offset,        model->waiting,
                      model->preference,    model->member_begin, model->members,       model->waiting_count,
                      model->starter_begin, model->load,         model->full_load,     model->floor,
                      model->blame,         model->dirty,        model->trail,         model->frames,
                      model->failed,        model->item_blocks,  model->section_blocks};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        arena_release(a, blocks[i]);
    arena_release(a, model);
}

remat_status arena_model_create(remat_context *context, const arena_part *part, arena_model **out)
{
    *out = NULL;
    uint32_t *closed = close_sections(context, part);
    arena_model *model = arena_array(context, 1, sizeof *model);
    if (closed == NULL || model == NULL) {
        arena_release(context, closed);
        arena_release(context, model);
        return REMAT_NO_MEMORY;
    }
    *model = (arena_model){.context = context, .part = part, .count = part->count};
    bool ready = allocate_items(model);
    size_t memberships = ready ? find_sections(model, closed) : 0;
    bool searchable = memberships <= MOST_MEMBERSHIPS;
    ready = ready && searchable && allocate_sections(model, memberships);
    arena_release(context, closed);
    if (!ready) {
        arena_model_destroy(model);
        return searchable ? REMAT_NO_MEMORY : REMAT_OK;
    }
    count_members(model);
    fill_members(model);
    *out = model;
    return REMAT_OK;
}
