#include "tape/tape_object.h"

#include <remat/units.h>

#include "plan/chain/plan_object.h"

/* ---- a plan that is given ---- */

static remat_status play(void *simulator, remat_step step)
{
    return remat_simulator_step(simulator, step);
}

/* Whether the plan, made for another profile, is legal for this chain. */
static remat_status check_legal(remat_tape *tape)
{
    remat_simulator *simulator;
    remat_figures figures;
    REMAT_TRY(remat_simulator_create(tape->context, tape->chain, &simulator));
    remat_status status = remat_plan_walk(tape->plan, play, simulator);
    if (status == REMAT_OK)
        status = remat_simulator_finish(simulator, &figures);
    remat_simulator_destroy(simulator);
    return status;
}

static remat_status use_plan(remat_tape *tape, const remat_plan *plan)
{
    walker_clear(&tape->walker);
    tape->plan = plan;
    REMAT_TRY(walker_create(&tape->walker, tape->context, plan));
    return tape_place(tape);
}

static remat_status use_given_plan(remat_tape *tape)
{
    const remat_tape_options *options = &tape->options;
    const remat_profile *meant_for = options->store_planned ? tape->chain : tape->profile;
    if (options->plan_path)
        REMAT_TRY(remat_plan_load(tape->context, options->plan_path, meant_for, &tape->own_plan));
    tape->plan = options->plan ? options->plan : tape->own_plan;
    if (!remat_plan_get_figures(tape->plan)->feasible)
        return plan_object_fail_infeasible(tape->context, tape->plan);
    REMAT_TRY(check_legal(tape));
    return use_plan(tape, tape->plan);
}

/* ---- a plan of the tape's own ---- */

/* Plans with a limit to the peak, and places what comes out. */
static remat_status try_peak(remat_tape *tape, uint64_t peak)
{
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.strategy = tape->options.strategy;
    options.budget_bytes = peak;
    options.allow_lossy = tape->options.allow_lossy || store_is_half(tape->options.store);
    walker_clear(&tape->walker);
    remat_plan_destroy(tape->own_plan);
    tape->plan = tape->own_plan = NULL;
    REMAT_TRY(remat_plan_create(tape->context, tape->chain, &options, &tape->own_plan));
    return use_plan(tape, tape->own_plan);
}

/* The layer that makes the peak of the last plan; of an online tape, its only one. */
static const char *peak_layer(const remat_tape *tape)
{
    if (tape->slots)
        return tape->chain->layers[0].name;
    return tape->plan && remat_plan_get_figures(tape->plan)->feasible ? plan_object_peak_layer(tape->plan) : NULL;
}

static remat_status refuse(remat_tape *tape, uint64_t least)
{
    char budget[REMAT_SIZE_TEXT], would_do[REMAT_SIZE_TEXT];
    uint64_t wanted = tape->options.budget_bytes;
    const char *layer = peak_layer(tape);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "budget_bytes";
    if (tape->options.least_bytes)
        *tape->options.least_bytes = least;
    remat_fail(tape->context, REMAT_INFEASIBLE, &place,
               "the arena does not fit into %llu bytes (%s); the smallest that was found takes %llu bytes (%s)",
               (unsigned long long)wanted, remat_size_print(wanted, budget), (unsigned long long)least,
               remat_size_print(least, would_do));
    return remat_fail_budget(tape->context, wanted, least, layer);
}

remat_status tape_budget_check(remat_tape *tape)
{
    return tape->arena_bytes <= tape->options.budget_bytes ? REMAT_OK : refuse(tape, tape->arena_bytes);
}

/* ---- the peak whose arena fits ---- */

/* Planners limit the peak, but the budget is for the arena. Each plan also says which limits make sense at all: below
 * `least_peak` the strategy has no plan, above `most_peak` the plans are all the same. */
typedef struct peak_search {
    remat_tape *tape;
    uint64_t least_peak, most_peak;
    /* At these two limits: they do not depend on the budget, so that it is found again when asked for. */
    uint64_t least_arena;
} peak_search;

/* REMAT_OK with *fits: the tape has a plan with this peak, and its arena fits. */
static remat_status search_try(peak_search *search, uint64_t peak, bool *fits)
{
    remat_tape *tape = search->tape;
    remat_status status = try_peak(tape, peak);
    *fits = false;
    if (status != REMAT_OK && (status != REMAT_INFEASIBLE || !tape->own_plan))
        return status;
    const remat_plan_figures *figures = remat_plan_get_figures(tape->own_plan);
    search->least_peak = figures->min_budget_bytes;
    search->most_peak = figures->base_peak_bytes > search->least_peak ? figures->base_peak_bytes : search->least_peak;
    if (status == REMAT_INFEASIBLE)
        return REMAT_OK;
    if ((peak == search->least_peak || peak == search->most_peak) && tape->arena_bytes < search->least_arena)
        search->least_arena = tape->arena_bytes;
    *fits = tape->arena_bytes <= tape->options.budget_bytes;
    return REMAT_OK;
}

/* The arena takes at least the peak, and a little more where the pieces do not fit together: the limit falls by what
 * was lost until it fits. */
static remat_status search_down(peak_search *search, bool *fits)
{
    enum { MOST_TRIES = 40 };
    const remat_tape *tape = search->tape;
    for (int i = 0; i < MOST_TRIES && !*fits && tape->plan; i++) {
        uint64_t over = tape->arena_bytes - tape->options.budget_bytes;
        uint64_t reached = remat_plan_get_figures(tape->plan)->schedule.peak_bytes;
        over = over > TAPE_ALIGNMENT ? over : TAPE_ALIGNMENT;
        if (reached < search->least_peak + over)
            break;
        REMAT_TRY(search_try(search, reached - over, fits));
    }
    return *fits ? REMAT_OK : search_try(search, search->least_peak, fits);
}

/* With a store the arena takes less than the peak: the largest limit whose arena fits. */
static remat_status search_up(peak_search *search, bool *fits)
{
    enum { MOST_TRIES = 12 };
    uint64_t low = search->tape->options.budget_bytes, high = search->most_peak;
    bool low_fits = *fits;
    if (!low_fits) {
        low = search->least_peak;
        REMAT_TRY(search_try(search, low, &low_fits));
    }
    if (low_fits && low >= high)
        return *fits ? REMAT_OK : search_try(search, low, fits);
    REMAT_TRY(search_try(search, high, fits));
    if (*fits || !low_fits)
        return REMAT_OK;
    for (int i = 0; i < MOST_TRIES && high - low > TAPE_ALIGNMENT; i++) {
        uint64_t middle = low + (high - low) / 2;
        REMAT_TRY(search_try(search, middle, fits));
        *(*fits ? &low : &high) = middle;
    }
    return *fits ? REMAT_OK : search_try(search, low, fits);
}

static remat_status search_plan(remat_tape *tape)
{
    peak_search search = {.tape = tape, .least_arena = UINT64_MAX};
    bool fits, shrinks = tape->options.store != REMAT_TAPE_MEMORY && !tape->options.store_planned;
    REMAT_TRY(search_try(&search, tape->options.budget_bytes, &fits));
    if (shrinks)
        REMAT_TRY(search_up(&search, &fits));
    else if (!fits)
        REMAT_TRY(search_down(&search, &fits));
    return fits ? REMAT_OK : refuse(tape, search.least_arena);
}

remat_status tape_plan_choose(remat_tape *tape)
{
    const remat_tape_options *options = &tape->options;
    bool given = options->plan || options->plan_path, has_budget = options->budget_bytes != REMAT_NO_BUDGET;
    if (!given && has_budget)
        return search_plan(tape);
    REMAT_TRY(given ? use_given_plan(tape) : try_peak(tape, REMAT_NO_BUDGET));
    return tape_budget_check(tape);
}
