/* From the caller's rows to parts: validates, rounds sizes to alignment units,
 * ranks the moments, sorts, and cuts where no item is live across a moment.
 *
 *   time  ----+=====+---+====+-----------   = live
 *         --+====+------+======+--+====+-
 *           \__ part 0_/ \part 1/ \part 2/  each is solved on its own and
 *                                           starts again at address 0 */
#include "arena/arena_internal.h"

#include "base/error.h"

static remat_status too_large(remat_context *context)
{
    return remat_fail(context, REMAT_INVALID, NULL, "the tensors are too many, or their sizes add up to 2^63 and more");
}

static remat_status validate(remat_context *context, const remat_lifetime *lifetimes, size_t count, uint64_t alignment,
                             uint32_t *used)
{
    uint64_t budget = (uint64_t)INT64_MAX / alignment, total = 0;
    *used = 0;
    if (count > UINT32_MAX / 4)
        return too_large(context);
    for (size_t i = 0; i < count; i++) {
        if (lifetimes[i].lower >= lifetimes[i].upper)
            return remat_fail(context, REMAT_INVALID, NULL,
                              "tensor %zu lives from %llu to %llu; it must begin before it ends", i,
                              (unsigned long long)lifetimes[i].lower, (unsigned long long)lifetimes[i].upper);
        if (lifetimes[i].size == 0)
            continue;
        uint64_t units = (lifetimes[i].size - 1) / alignment + 1;
        if (units > budget - total)
            return too_large(context);
        total += units;
        (*used)++;
    }
    return REMAT_OK;
}

typedef struct {
    uint64_t *keys;    /* 2 per item */
    uint32_t *order;   /* 2 per item */
    uint32_t *scratch; /* 2 per item */
    arena_item *items; /* unsorted copy */
} workspace;

static void workspace_destroy(remat_context *context, workspace *work)
{
    arena_release(context, work->keys);
    arena_release(context, work->order);
    arena_release(context, work->scratch);
    arena_release(context, work->items);
}

static bool workspace_create(remat_context *context, workspace *work, uint32_t count)
{
    work->keys = arena_array(context, 2 * (size_t)count, sizeof *work->keys);
    work->order = arena_array(context, 2 * (size_t)count, sizeof *work->order);
    work->scratch = arena_array(context, 2 * (size_t)count, sizeof *work->scratch);
    work->items = arena_array(context, count, sizeof *work->items);
    if (work->keys && work->order && work->scratch && work->items)
        return true;
    workspace_destroy(context, work);
    return false;
}

static void copy_used_rows(workspace *work, const remat_lifetime *lifetimes, size_t count, uint64_t alignment)
{
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (lifetimes[i].size == 0)
            continue;
        work->items[at].size = (lifetimes[i].size - 1) / alignment + 1;
        work->items[at].length = lifetimes[i].upper - lifetimes[i].lower;
        work->items[at].row = (uint32_t)i;
        work->keys[2 * at] = lifetimes[i].lower;
        work->keys[2 * at + 1] = lifetimes[i].upper;
        at++;
    }
}

static void rank_moments(workspace *work, uint32_t count)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < 2 * count; i++)
        work->order[i] = i;
    arena_sort(work->order, work->keys, work->scratch, 2 * count);
    for (uint32_t i = 0; i < 2 * count; i++) {
        uint32_t moment = work->order[i];
        if (i > 0 && work->keys[moment] != work->keys[work->order[i - 1]])
            rank++;
        if (moment % 2 == 0)
            work->items[moment / 2].begin = rank;
        else
            work->items[moment / 2].end = rank;
    }
}

/* By begin; ties longest first, then largest, then the caller's order. */
static void sort_items(workspace *work, arena_item *sorted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        work->order[i] = i;
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            const arena_item *item = &work->items[i];
            work->keys[i] = pass == 0 ? UINT64_MAX - item->size : pass == 1 ? UINT32_MAX - item->end : item->begin;
        }
        arena_sort(work->order, work->keys, work->scratch, count);
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = work->items[work->order[i]];
}

/* change[moment] is what comes alive less what ends, modulo 2^64. */
static uint64_t largest_load(const arena_part *part, uint64_t *change)
{
    uint32_t first = part->items[0].begin, last = first;
    for (uint32_t i = 0; i < part->count; i++) {
        const arena_item *item = &part->items[i];
        change[item->begin] += item->size;
        change[item->end] -= item->size;
        if (item->end > last)
            last = item->end;
    }
    uint64_t live = 0, most = 0;
    for (uint32_t moment = first; moment <= last; moment++) {
        live += change[moment];
        if (live > most)
            most = live;
        change[moment] = 0; /* the next part may begin at this part's last moment */
    }
    return most;
}

static void stack_up(arena_part *part)
{
    uint64_t top = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        part->offsets[i] = top;
        top += part->items[i].size;
    }
    part->height = top;
}

static void cut_into_parts(arena_problem *problem, uint64_t *change)
{
    uint32_t begin = 0;
    for (uint32_t i = 0; i < 2 * problem->item_count; i++)
        change[i] = 0;
    while (begin < problem->item_count) {
        uint32_t end = begin, reach = problem->items[begin].end;
        while (end < problem->item_count && problem->items[end].begin < reach) {
            if (problem->items[end].end > reach)
                reach = problem->items[end].end;
            end++;
        }
        arena_part *part = &problem->parts[problem->part_count++];
        part->items = problem->items + begin;
        part->offsets = problem->offsets + begin;
        part->count = end - begin;
        part->load = part->lower_bound = largest_load(part, change);
        stack_up(part); /* always valid: nothing shares an address at all */
        begin = end;
    }
}

void arena_problem_destroy(remat_context *context, arena_problem *problem)
{
    arena_release(context, problem->items);
    arena_release(context, problem->offsets);
    arena_release(context, problem->parts);
}

remat_status arena_problem_create(remat_context *context, arena_problem *problem, const remat_lifetime *lifetimes,
                                  size_t count, uint64_t alignment)
{
    *problem = (arena_problem){0};
    remat_status status = validate(context, lifetimes, count, alignment, &problem->item_count);
    if (status != REMAT_OK)
        return status;
    uint32_t used = problem->item_count;
    workspace work = {0};
    if (!workspace_create(context, &work, used))
        return REMAT_NO_MEMORY;
    problem->items = arena_array(context, used, sizeof *problem->items);
    problem->offsets = arena_array(context, used, sizeof *problem->offsets);
    problem->parts = arena_array(context, used, sizeof *problem->parts);
    if (problem->items && problem->offsets && problem->parts) {
        copy_used_rows(&work, lifetimes, count, alignment);
        rank_moments(&work, used);
        sort_items(&work, problem->items, used);
        cut_into_parts(problem, work.keys);
    } else {
        arena_problem_destroy(context, problem);
        status = REMAT_NO_MEMORY;
    }
    workspace_destroy(context, &work);
    return status;
}

uint64_t arena_height_of(const arena_part *part, const uint64_t *offsets)
{
    uint64_t height = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        uint64_t top = offsets[i] + part->items[i].size;
        if (top > height)
            height = top;
    }
    return height;
}
