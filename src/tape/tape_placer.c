#include "tape/tape_placer.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <string.h>

void placer_begin(tape_placer *placer, remat_context *context)
{
    *placer = (tape_placer){.context = context, .mode = PLACER_COUNT, .pool_fits = true};
    tape_pool_begin(&placer->pool, context);
}

void placer_clear(tape_placer *placer)
{
    remat_release(placer->context, placer->ranges, placer->range_capacity, sizeof *placer->ranges);
    remat_release(placer->context, placer->offsets, placer->offset_count, sizeof *placer->offsets);
    tape_pool_clear(&placer->pool);
    placer_begin(placer, placer->context);
}

/* ---- before there are offsets ---- */

static remat_status count_take(tape_placer *placer, uint64_t bytes, bool pooled)
{
    placer->range_count++;
    if (!remat_add(&placer->live_bytes, bytes))
        return remat_fail(placer->context, REMAT_INVALID, NULL, "the bytes that are live at once pass 2^63");
    if (placer->live_bytes > placer->peak_bytes)
        placer->peak_bytes = placer->live_bytes;
    if (!pooled || !placer->pool_fits)
        return REMAT_OK;
    REMAT_TRY(tape_pool_count_take(&placer->pool, bytes));
    if (placer->pool.class_count > POOL_MOST_CLASSES) {
        placer->pool_fits = false;
        tape_pool_clear(&placer->pool);
    }
    return REMAT_OK;
}

static void count_give(tape_placer *placer, uint64_t bytes, bool pooled)
{
    placer->live_bytes -= bytes;
    if (pooled && placer->pool_fits)
        tape_pool_count_give(&placer->pool, bytes);
}

static remat_status record_take(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at)
{
    REMAT_TRY(remat_grow(placer->context, (void **)&placer->ranges, &placer->range_capacity, placer->recorded + 1,
                         sizeof *placer->ranges));
    /* Until it is given back it lasts for ever: what is left over at the end of a schedule is legal. */
    placer->ranges[placer->recorded] = (remat_lifetime){.lower = now, .upper = UINT64_MAX, .size = bytes};
    *at = placer->recorded++;
    return REMAT_OK;
}

/* ---- taking and giving ---- */

remat_status placer_take(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at)
{
    *at = PLACE_NOTHING;
    if (bytes == 0)
        return REMAT_OK;
    switch (placer->mode) {
    case PLACER_COUNT: *at = 0; return count_take(placer, bytes, true);
    case PLACER_RECORD: return record_take(placer, bytes, now, at);
    case PLACER_LIST: *at = placer->offsets[placer->next++]; return REMAT_OK;
    case PLACER_POOL: *at = tape_pool_offset(&placer->pool, tape_pool_take(&placer->pool, bytes), bytes); break;
    }
    return REMAT_OK;
}

void placer_give(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now)
{
    if (at == PLACE_NOTHING)
        return;
    if (placer->mode == PLACER_COUNT)
        count_give(placer, bytes, true);
    else if (placer->mode == PLACER_RECORD)
        placer->ranges[at].upper = now > placer->ranges[at].lower ? now : placer->ranges[at].lower + 1;
    else if (placer->mode == PLACER_POOL)
        tape_pool_give(&placer->pool, tape_pool_slot(&placer->pool, at, bytes), bytes);
}

remat_status placer_take_workspace(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at)
{
    if (placer->mode == PLACER_COUNT && bytes > 0) {
        placer->workspace_bytes = bytes > placer->workspace_bytes ? bytes : placer->workspace_bytes;
        *at = 0;
        return count_take(placer, bytes, false);
    }
    if (placer->mode == PLACER_POOL && bytes > 0) {
        *at = placer->pool.bytes;
        return REMAT_OK;
    }
    return placer_take(placer, bytes, now, at);
}

void placer_give_workspace(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now)
{
    if (placer->mode == PLACER_COUNT && at != PLACE_NOTHING)
        count_give(placer, bytes, false);
    else if (placer->mode == PLACER_RECORD)
        placer_give(placer, at, bytes, now);
}

/* ---- choosing offsets ---- */

uint64_t placer_pool_bytes(const tape_placer *placer)
{
    uint64_t sum = placer->workspace_bytes;
    if (!placer->pool_fits)
        return UINT64_MAX;
    for (size_t i = 0; i < placer->pool.class_count; i++) {
        uint64_t all;
        if (!remat_multiply(placer->pool.classes[i].most, placer->pool.classes[i].bytes, &all))
            return UINT64_MAX;
        sum = remat_add_saturated(sum, all);
    }
    return sum;
}

remat_status placer_use_pool(tape_placer *placer)
{
    REMAT_TRY(tape_pool_build(&placer->pool));
    placer->mode = PLACER_POOL;
    placer->arena_bytes = placer->pool.bytes + placer->workspace_bytes;
    return REMAT_OK;
}

remat_status placer_use_record(tape_placer *placer)
{
    if (placer->range_count > SIZE_MAX / sizeof *placer->ranges)
        return remat_fail(placer->context, REMAT_NO_MEMORY, NULL, "the schedule is too long to be placed");
    placer->ranges = remat_alloc(placer->context, placer->range_count, sizeof *placer->ranges);
    if (!placer->ranges)
        return REMAT_NO_MEMORY;
    placer->range_capacity = placer->range_count ? placer->range_count : 1;
    placer->recorded = 0;
    placer->mode = PLACER_RECORD;
    return REMAT_OK;
}

static remat_status take_offsets(tape_placer *placer, uint64_t height)
{
    placer->offsets = remat_alloc(placer->context, placer->recorded, sizeof *placer->offsets);
    if (!placer->offsets)
        return REMAT_NO_MEMORY;
    placer->offset_count = placer->recorded;
    for (size_t i = 0; i < placer->recorded; i++)
        placer->offsets[i] = placer->ranges[i].offset;
    placer->mode = PLACER_LIST;
    placer->arena_bytes = height;
    return REMAT_OK;
}

/* Lives that were never given back end with the last one of the others. */
static void end_ranges(tape_placer *placer, uint64_t end)
{
    for (size_t i = 0; i < placer->recorded; i++)
        if (placer->ranges[i].upper == UINT64_MAX)
            placer->ranges[i].upper = end;
}

static uint64_t last_tick(const tape_placer *placer)
{
    uint64_t end = 0;
    for (size_t i = 0; i < placer->recorded; i++) {
        const remat_lifetime *range = &placer->ranges[i];
        uint64_t known = range->upper == UINT64_MAX ? range->lower + 1 : range->upper;
        end = known > end ? known : end;
    }
    return end;
}

/* How hard to search where the heuristics lose something: about a second. Longer lists are left at heuristics. */
enum { SEARCH_EFFORT = 100000, SEARCH_MOST_LIVES = 100000 };

static remat_status place(tape_placer *placer, uint64_t capacity, uint64_t *height)
{
    arena_options options = {.alignment = TAPE_ALIGNMENT,
                             .capacity = capacity,
                             .node_limit = placer->recorded <= SEARCH_MOST_LIVES ? SEARCH_EFFORT : 0};
    arena_result result = {0};
    remat_status status = arena_place(placer->context, placer->ranges, placer->recorded, &options, &result);
    *height = result.height;
    return status == REMAT_INFEASIBLE ? REMAT_OK : status; /* not within the capacity; placed all the same */
}

remat_status placer_use_list(tape_placer *placer, uint64_t budget)
{
    uint64_t height;
    end_ranges(placer, last_tick(placer));
    remat_status status = place(placer, 0, &height);
    if (status == REMAT_OK && height > budget) /* all effort at the one height that matters */
        status = place(placer, budget, &height);
    if (status == REMAT_OK)
        status = placer_pool_bytes(placer) <= height ? placer_use_pool(placer) : take_offsets(placer, height);
    remat_release(placer->context, placer->ranges, placer->range_capacity, sizeof *placer->ranges);
    placer->ranges = NULL;
    placer->range_capacity = 0;
    return status;
}

void placer_restart(tape_placer *placer)
{
    placer->next = 0;
    if (placer->mode == PLACER_POOL)
        tape_pool_reset(&placer->pool);
}
