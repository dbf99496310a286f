/* The whole solver: parts, heuristics, then search for each part that is still
 * higher than it needs to be. */
#include "arena/arena_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <string.h>

typedef struct {
    remat_context *context;
    uint64_t effort; /* search effort left */
    uint64_t *spare; /* offsets of a new placement before it is adopted */
} placer;

static remat_status run_heuristics(placer *p, arena_part *part, uint64_t goal)
{
    remat_status status = arena_skyline(p->context, part, goal);
    if (status == REMAT_OK && part->height > goal)
        status = arena_sweep(p->context, part, goal);
    return status;
}

static void adopt(arena_part *part, const uint64_t *offsets)
{
    part->height = arena_height_of(part, offsets);
    for (uint32_t i = 0; i < part->count; i++)
        part->offsets[i] = offsets[i];
}

/* Searches at one capacity; notes a better placement or a better bound. */
static arena_outcome search_at(placer *p, arena_part *part, arena_model *model, uint64_t capacity, uint64_t share)
{
    uint64_t effort = share < p->effort ? share : p->effort, before = effort;
    arena_outcome outcome = arena_search(model, capacity, &effort, p->spare);
    p->effort -= before - effort;
    if (outcome == ARENA_FOUND)
        adopt(part, p->spare);
    if (outcome == ARENA_IMPOSSIBLE && capacity + 1 > part->lower_bound)
        part->lower_bound = capacity + 1;
    return outcome;
}

/* Down to goal if possible, else halving what lies between the best height and
 * the highest capacity that was refuted or given up. */
static remat_status lower_the_part(placer *p, arena_part *part, arena_model *model, uint64_t goal, bool any_fit)
{
    if (goal < part->lower_bound)
        goal = part->lower_bound;
    /* a given capacity gets nearly everything; the rest lowers what is reported if it fails */
    uint64_t share = any_fit ? p->effort - p->effort / 8 : p->effort / 2;
    arena_outcome outcome = search_at(p, part, model, goal, share);
    uint64_t low = goal; /* not reached */
    while (outcome != ARENA_FAILED_ALLOC && part->height > goal && part->height - low > 1 && p->effort > 0) {
        uint64_t middle = low + (part->height - low) / 2;
        outcome = search_at(p, part, model, middle, p->effort / 4 + 1000);
        if (outcome != ARENA_FOUND)
            low = middle;
    }
    return outcome == ARENA_FAILED_ALLOC ? REMAT_NO_MEMORY : REMAT_OK;
}

static remat_status improve_part(placer *p, arena_part *part, uint64_t goal, bool any_fit)
{
    remat_status status = run_heuristics(p, part, goal);
    if (status != REMAT_OK || part->height <= goal || p->effort == 0)
        return status;
    arena_model *model = NULL;
    status = arena_model_create(p->context, part, &model);
    if (status == REMAT_OK && model != NULL)
        status = lower_the_part(p, part, model, goal, any_fit);
    arena_model_destroy(model);
    return status;
}

/* Every part needs only to get down to the highest bound of any part, or to
 * the height some part is stuck at: the arena is as high as its highest part. */
static remat_status improve_parts(placer *p, arena_problem *problem, uint64_t capacity)
{
    uint64_t goal = capacity;
    for (uint32_t i = 0; i < problem->part_count; i++)
        if (problem->parts[i].load > goal)
            goal = problem->parts[i].load;
    for (uint32_t i = 0; i < problem->part_count; i++) {
        arena_part *part = &problem->parts[i];
        if (part->height <= goal)
            continue;
        bool any_fit = capacity >= part->lower_bound;
        remat_status status = improve_part(p, part, goal, any_fit);
        if (status != REMAT_OK)
            return status;
        if (part->height > goal)
            goal = part->height;
    }
    return REMAT_OK;
}

static void summarize(const arena_problem *problem, uint64_t alignment, arena_result *result)
{
    for (uint32_t i = 0; i < problem->part_count; i++) {
        const arena_part *part = &problem->parts[i];
        if (part->height > result->height)
            result->height = part->height;
        if (part->lower_bound > result->lower_bound)
            result->lower_bound = part->lower_bound;
    }
    result->height *= alignment;
    result->lower_bound *= alignment;
    result->proven_optimal = result->height == result->lower_bound;
}

static void write_offsets(const arena_problem *problem, uint64_t alignment, remat_lifetime *lifetimes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lifetimes[i].size == 0)
            lifetimes[i].offset = 0;
    for (uint32_t i = 0; i < problem->item_count; i++)
        lifetimes[problem->items[i].row].offset = problem->offsets[i] * alignment;
}

remat_status arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count, const arena_options *options,
                         arena_result *result)
{
    *result = (arena_result){0};
    if (options->alignment == 0)
        return remat_fail(context, REMAT_INVALID, NULL, "an alignment of 0 means nothing; it must be at least 1");
    arena_problem problem;
    REMAT_TRY(arena_problem_create(context, &problem, lifetimes, count, options->alignment));
    placer p = {.context = context, .effort = options->node_limit};
    p.spare = arena_array(context, problem.item_count, sizeof *p.spare);
    remat_status status = p.spare ? REMAT_OK : REMAT_NO_MEMORY;
    uint64_t capacity = options->capacity / options->alignment;
    if (status == REMAT_OK)
        status = improve_parts(&p, &problem, capacity);
    if (status == REMAT_OK) {
        summarize(&problem, options->alignment, result);
        write_offsets(&problem, options->alignment, lifetimes, count);
        result->nodes = options->node_limit - p.effort;
    }
    arena_release(context, p.spare);
    arena_problem_destroy(context, &problem);
    if (status != REMAT_OK || options->capacity == 0 || result->height <= options->capacity)
        return status;
    result->proven_impossible = result->lower_bound > options->capacity;
    remat_fail(context, REMAT_INFEASIBLE, NULL,
               "no placement within %llu bytes was found; the best needs %llu, and none can need less than %llu",
               (unsigned long long)options->capacity, (unsigned long long)result->height,
               (unsigned long long)result->lower_bound);
    return remat_fail_budget(context, options->capacity, result->height, NULL);
}

/* ---- the public face ---- */

void remat_arena_options_init_sized(remat_arena_options *options, size_t size)
{
    const remat_arena_options defaults = {.alignment = 1, .effort = ARENA_DEFAULT_NODE_LIMIT};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* The caller's tensors as an array of this library's: a copy where theirs have another size. */
static remat_status take_lifetimes(remat_context *context, const remat_lifetime *from, size_t size, size_t count,
                                   remat_lifetime **copy)
{
    *copy = NULL;
    if (size == sizeof **copy)
        return REMAT_OK;
    *copy = remat_alloc_zeroed(context, count, sizeof **copy);
    if (!*copy)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!remat_struct_take(&(*copy)[i], sizeof **copy, (const char *)from + i * size, size)) {
            remat_release(context, *copy, count, sizeof **copy);
            return remat_fail(context, REMAT_INVALID, NULL, "tensor %zu uses a member that this library does not know",
                              i);
        }
    return REMAT_OK;
}

static void give_offsets(remat_lifetime *to, size_t size, const remat_lifetime *copy, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy((char *)to + i * size + offsetof(remat_lifetime, offset), &copy[i].offset, sizeof copy[i].offset);
}

remat_status remat_arena_place_sized(remat_context *context, remat_lifetime *lifetimes, size_t lifetime_size,
                                     size_t count, const remat_arena_options *given, remat_arena_result *result,
                                     size_t result_size)
{
    remat_arena_options options;
    remat_arena_options_init(&options);
    REMAT_TRY(remat_options_copy(context, &options, sizeof options, given, "remat_arena_options_init"));
    remat_lifetime *copy;
    REMAT_TRY(take_lifetimes(context, lifetimes, lifetime_size, count, &copy));
    const arena_options inner = {options.alignment, options.capacity, options.effort};
    arena_result found;
    remat_status status = arena_place(context, copy ? copy : lifetimes, count, &inner, &found);
    if (copy && (status == REMAT_OK || status == REMAT_INFEASIBLE))
        give_offsets(lifetimes, lifetime_size, copy, count);
    remat_release(context, copy, count, sizeof *copy);
    const remat_arena_result shown = {found.height, found.lower_bound};
    remat_struct_give(result, result_size, &shown, sizeof shown);
    return status;
}

remat_status remat_arena_check_sized(remat_context *context, const remat_lifetime *lifetimes, size_t lifetime_size,
                                     size_t count, uint64_t alignment, uint64_t height)
{
    remat_lifetime *copy;
    REMAT_TRY(take_lifetimes(context, lifetimes, lifetime_size, count, &copy));
    remat_status status = arena_check(context, copy ? copy : lifetimes, count, alignment, height);
    remat_release(context, copy, count, sizeof *copy);
    return status;
}
