/* Cuts the network of a trainer into stages: the slowest stage is as fast as can be, and each fits the budget of its rank.
 *
 * Without a budget the costs of the layers decide. With one, a stage takes the time of its own plan, which may recompute. If the
 * fastest cut by costs fits with little recomputed, it is taken. Otherwise, for a given time each stage, from the first on, takes as
 * many layers as it can, and a bisection finds the least time for which the last stage gets the rest. This is right as long as a
 * stage of more layers is never faster or smaller. It may be smaller: where less crosses, there is less to keep for the others. So where
 * places are few, all cuts are compared that may still be faster. Of several ranks the first finds the cut and tells the others. */
#include <inttypes.h>
#include <string.h>

#include <remat/units.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"
#include "train/trainer_object.h"

enum {
    BISECTIONS = 6, /* the least time is found to 1 / 2^6 of what might be saved */
    NEAR = 64,      /* a cut is good enough if it is slower than the fastest without a budget by one part of so many */
    MOST_TRIES = 2000 /* stages that are planned to compare all cuts */
};

typedef struct stage_try {
    size_t first, end;
    uint64_t in_flight;
    uint64_t cost;   /* UINT64_MAX: does not fit */
    uint64_t needed; /* then: the least that would */
} stage_try;

typedef struct cutter {
    remat_trainer *trainer;
    stage_cuts cuts;
    size_t stages;
    stage_try *tries;
    size_t try_count, try_capacity;
    bool thorough; /* the plans of stages are searched for, as they are in the end */
} cutter;

static uint64_t in_flight_of(const remat_trainer *trainer, size_t stages, size_t stage)
{
    const uint64_t each = trainer->settings.accumulate / trainer_row_count(trainer);
    return remat_min(stages - stage, each);
}

/* ---- one stage ---- */

static uint32_t layer_at(const cutter *cut, size_t place)
{
    return place < cut->cuts.count ? cut->cuts.layers[place] : (uint32_t)cut->trainer->network->layer_count;
}

static void release_plan(remat_trainer *copy)
{
    graph_plan_destroy(copy->plan);
    placed_graph_release(&copy->evaluation_plan);
    copy->plan = NULL;
}

void trainer_close_stage(remat_trainer *copy)
{
    release_plan(copy);
    program_destroy(copy->program);
    program_destroy(copy->evaluation);
    trainer_release_places(copy);
    pipeline_destroy(copy->pipeline);
}

/* A copy of a trainer that has a network, as another stage: its programs, and where its parameters are. */
static remat_status copy_trainer(const remat_trainer *trainer, uint32_t count, uint32_t number, const uint32_t *starts,
                                 uint64_t in_flight, remat_trainer *copy)
{
    *copy = *trainer;
    copy->pipeline = NULL;
    copy->program = copy->evaluation = NULL;
    copy->plan = NULL;
    copy->evaluation_plan = (placed_graph){0};
    copy->state_offsets = copy->gradient_offsets = copy->weight_offsets = NULL;
    copy->shard = NULL;
    REMAT_TRY(trainer_set_stage(copy, count, number, starts, in_flight));
    REMAT_TRY(trainer_build_programs(copy));
    return trainer_place(copy);
}

remat_status trainer_open_stage(const remat_trainer *trainer, uint64_t stage, remat_trainer *copy)
{
    const pipeline *stages = trainer->pipeline;
    remat_status status = copy_trainer(trainer, stages->count, (uint32_t)stage, stages->starts,
                                       in_flight_of(trainer, stages->count, stage), copy);
    if (status == REMAT_OK)
        status = trainer_plan(copy);
    if (status != REMAT_OK)
        trainer_close_stage(copy);
    return status;
}

/* Everything kept is the fastest; a search is only for those that do not fit so. */
static remat_status plan_copy(remat_trainer *copy)
{
    const char *strategy = copy->options.strategy;
    if (strategy && strcmp(strategy, "optimal") != 0)
        return trainer_plan(copy);
    copy->options.strategy = "none";
    remat_status status = trainer_plan(copy);
    copy->options.strategy = strategy;
    if (status != REMAT_INFEASIBLE)
        return status;
    release_plan(copy);
    return trainer_plan(copy);
}

/* A stage depends on nothing but its own layers: all before it might be one stage, and all behind it another. */
static remat_status plan_stage(const cutter *cut, stage_try *tried)
{
    remat_trainer copy;
    const uint32_t end = (uint32_t)cut->trainer->network->layer_count;
    const uint32_t starts[] = {0, layer_at(cut, tried->first), layer_at(cut, tried->end), end};
    remat_status status =
        copy_trainer(cut->trainer, tried->end < cut->cuts.count ? 3 : 2, 1, starts, tried->in_flight, &copy);
    const uint64_t fixed = status == REMAT_OK ? trainer_fixed_bytes(&copy) : 0;
    copy.plans_chain_only = !cut->thorough;
    copy.options.plan_only = false; /* nobody asks what the smallest budget costs */
    if (status == REMAT_OK)
        status = fixed < copy.options.budget_bytes ? plan_copy(&copy) : REMAT_INFEASIBLE;
    tried->cost = status == REMAT_OK ? copy.plan->cost : UINT64_MAX;
    if (status == REMAT_INFEASIBLE) {
        tried->needed =
            fixed + remat_max(copy.plan ? copy.plan->min_budget_bytes : 0, copy.evaluation_plan.arena_bytes);
        status = REMAT_OK;
    }
    trainer_close_stage(&copy);
    return status;
}

static remat_status try_stage(cutter *cut, size_t stage, size_t first, size_t end, stage_try *tried)
{
    *tried = (stage_try){.first = first, .end = end};
    tried->in_flight = in_flight_of(cut->trainer, cut->stages, stage);
    for (size_t i = 0; i < cut->try_count; i++)
        if (cut->tries[i].first == first && cut->tries[i].end == end && cut->tries[i].in_flight == tried->in_flight) {
            *tried = cut->tries[i];
            return REMAT_OK;
        }
    REMAT_TRY(plan_stage(cut, tried));
    REMAT_TRY(remat_grow(cut->trainer->context, (void **)&cut->tries, &cut->try_capacity, cut->try_count + 1,
                         sizeof *cut->tries));
    cut->tries[cut->try_count++] = *tried;
    return REMAT_OK;
}

/* ---- as many layers as can be ---- */

static remat_status fits(cutter *cut, size_t stage, size_t first, size_t end, uint64_t time, bool *does)
{
    stage_try tried;
    *does = false;
    if (stage_cuts_cost(&cut->cuts, first, end) > time)
        return REMAT_OK;
    REMAT_TRY(try_stage(cut, stage, first, end, &tried));
    *does = tried.cost != UINT64_MAX && tried.cost <= time;
    return REMAT_OK;
}

/* The last place up to which a stage fits; `first` where it never does. */
static remat_status find_end(cutter *cut, size_t stage, size_t first, uint64_t time, size_t *end)
{
    const size_t left = cut->stages - 1 - stage; /* that follow need a place each */
    size_t low = first, high = cut->cuts.count - left;
    while (low < high) {
        const size_t middle = low + (high - low + 1) / 2;
        bool does;
        REMAT_TRY(fits(cut, stage, first, middle, time, &does));
        if (does)
            low = middle;
        else
            high = middle - 1;
    }
    *end = low;
    return REMAT_OK;
}

/* Whether there is a cut with no stage above a time, and its slowest stage. */
static remat_status try_time(cutter *cut, uint64_t time, size_t *places, uint64_t *slowest)
{
    const size_t last = cut->stages - 1;
    *slowest = 0;
    places[0] = 0;
    for (size_t s = 0; s <= last; s++) {
        stage_try tried;
        places[s + 1] = cut->cuts.count;
        if (s < last)
            REMAT_TRY(find_end(cut, s, places[s], time, &places[s + 1]));
        if (places[s + 1] == places[s]) {
            *slowest = UINT64_MAX;
            return REMAT_OK;
        }
        REMAT_TRY(try_stage(cut, s, places[s], places[s + 1], &tried));
        *slowest = remat_max(*slowest, tried.cost > time ? UINT64_MAX : tried.cost);
    }
    return REMAT_OK;
}

static remat_status too_small(cutter *cut, const size_t *chosen)
{
    remat_context *context = cut->trainer->context;
    const uint64_t budget = cut->trainer->options.budget_bytes;
    char given[REMAT_SIZE_TEXT], needed[REMAT_SIZE_TEXT];
    size_t worst = 0;
    uint64_t most = 0;
    for (size_t s = 0; s < cut->stages; s++) {
        stage_try tried;
        REMAT_TRY(try_stage(cut, s, chosen[s], chosen[s + 1], &tried));
        if (tried.cost == UINT64_MAX && tried.needed > most) {
            most = tried.needed;
            worst = s;
        }
    }
    remat_fail(
        context, REMAT_INFEASIBLE, NULL,
        "the budget of %s is too small: no cut into %zu stages was found that fits; of the fastest, stage %zu, from "
        "layer %s on, takes at least %" PRIu64 " bytes (%s)",
        remat_size_print(budget, given), cut->stages, worst,
        cut->trainer->network->layers[layer_at(cut, chosen[worst])].node.name, most, remat_size_print_up(most, needed));
    return remat_fail_budget(context, budget, most, NULL);
}

/* ---- all cuts ---- */

/* The least time of the slowest stage among stages 0 .. s, of which s ends at a place, and where s begins. */
typedef struct cut_end {
    uint64_t slowest;
    size_t first;
} cut_end;

/* Fewer stages with a place each do not fill the rest in time. */
static bool is_hopeless(const cutter *cut, size_t stage, size_t end, uint64_t most)
{
    const size_t left = cut->stages - 1 - stage;
    if (end + left > cut->cuts.count || (left == 0 && end < cut->cuts.count))
        return true;
    return left > 0 && stage_cuts_cost(&cut->cuts, end, cut->cuts.count) / left >= most;
}

static remat_status compare_ends(cutter *cut, size_t stage, uint64_t most, const cut_end *before, cut_end *ends)
{
    for (size_t end = 0; end <= cut->cuts.count; end++) {
        ends[end] = (cut_end){UINT64_MAX, 0};
        if (end <= stage || is_hopeless(cut, stage, end, most))
            continue;
        for (size_t first = end; first-- > stage;) {
            stage_try tried;
            if (stage_cuts_cost(&cut->cuts, first, end) >= most)
                break;
            if (before[first].slowest >= remat_min(most, ends[end].slowest))
                continue;
            if (cut->try_count >= MOST_TRIES)
                return REMAT_OK;
            REMAT_TRY(try_stage(cut, stage, first, end, &tried));
            const uint64_t slowest = remat_max(before[first].slowest, tried.cost);
            if (slowest < remat_min(most, ends[end].slowest))
                ends[end] = (cut_end){slowest, first};
        }
    }
    return REMAT_OK;
}

/* Compares all cuts whose slowest stage takes less than *most. */
static remat_status compare_all(cutter *cut, size_t *chosen, uint64_t *most)
{
    const size_t row = cut->cuts.count + 1, stages = cut->stages;
    cut_end *ends = remat_alloc(cut->trainer->context, (stages + 1) * row, sizeof *ends);
    if (!ends)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < row; i++)
        ends[i] = (cut_end){i == 0 ? 0 : UINT64_MAX, 0};
    remat_status status = REMAT_OK;
    for (size_t s = 0; s < stages && status == REMAT_OK; s++)
        status = compare_ends(cut, s, *most, ends + s * row, ends + (s + 1) * row);
    const cut_end *last = ends + stages * row;
    if (status == REMAT_OK && last[cut->cuts.count].slowest < *most) {
        *most = last[cut->cuts.count].slowest;
        chosen[stages] = cut->cuts.count;
        for (size_t s = stages; s-- > 0;)
            chosen[s] = ends[(s + 1) * row + chosen[s + 1]].first;
    }
    remat_release(cut->trainer->context, ends, (stages + 1) * row, sizeof *ends);
    return status;
}

/* ---- within a budget ---- */

/* The slowest stage of a cut by their plans, UINT64_MAX where one does not fit, and by costs alone. */
static remat_status time_cut(cutter *cut, const size_t *chosen, uint64_t *slowest, uint64_t *least)
{
    *slowest = *least = 0;
    for (size_t s = 0; s < cut->stages; s++) {
        stage_try tried;
        REMAT_TRY(try_stage(cut, s, chosen[s], chosen[s + 1], &tried));
        *slowest = remat_max(*slowest, tried.cost);
        *least = remat_max(*least, stage_cuts_cost(&cut->cuts, chosen[s], chosen[s + 1]));
    }
    return REMAT_OK;
}

static bool is_near(uint64_t most, uint64_t least)
{
    return most != UINT64_MAX && most <= least + least / NEAR;
}

/* Replaces the chosen cut, which takes *most, by faster ones. */
static remat_status find_by_time(cutter *cut, size_t *chosen, size_t *places, uint64_t least, uint64_t *most)
{
    for (int i = 0; i <= BISECTIONS && least < *most && !is_near(*most, least); i++) {
        const uint64_t time = *most == UINT64_MAX ? UINT64_MAX - 1 : least + (*most - least) / 2;
        uint64_t slowest;
        REMAT_TRY(try_time(cut, time, places, &slowest));
        if (slowest == UINT64_MAX && *most == UINT64_MAX)
            return REMAT_OK; /* none fits */
        if (slowest == UINT64_MAX) {
            least = time + 1;
            continue;
        }
        *most = slowest;
        memcpy(chosen, places, (cut->stages + 1) * sizeof *chosen);
    }
    return REMAT_OK;
}

static remat_status find_fastest(cutter *cut, size_t *chosen, size_t *places, uint64_t *most)
{
    const size_t count = cut->cuts.count;
    uint64_t least;
    REMAT_TRY(time_cut(cut, chosen, most, &least));
    if (is_near(*most, least))
        return REMAT_OK;
    REMAT_TRY(find_by_time(cut, chosen, places, least, most));
    if (!is_near(*most, least) && cut->stages * count * count <= 2 * MOST_TRIES)
        REMAT_TRY(compare_all(cut, chosen, most));
    return REMAT_OK;
}

/* The plans of chains are found in milliseconds, and the plan of a stage in the end is no worse. */
static remat_status find_within_budget(cutter *cut, size_t *chosen, size_t *places)
{
    uint64_t most;
    REMAT_TRY(find_fastest(cut, chosen, places, &most));
    if (most == UINT64_MAX) {
        cut->thorough = true;
        cut->try_count = 0;
        REMAT_TRY(find_fastest(cut, chosen, places, &most));
    }
    return most == UINT64_MAX ? too_small(cut, chosen) : REMAT_OK;
}

/* ---- all together ---- */

static remat_status check_count(const cutter *cut)
{
    if (cut->stages <= cut->cuts.count)
        return REMAT_OK;
    return remat_fail(cut->trainer->context, REMAT_INVALID, NULL,
                      "the model cannot be cut into %zu stages: %zu of its layers can begin one", cut->stages,
                      cut->cuts.count);
}

static remat_status choose(cutter *cut, size_t *chosen, size_t *places, uint32_t *starts)
{
    const remat_train_options *options = &cut->trainer->options;
    const bool has_budget = options->budget_bytes != REMAT_NO_BUDGET && options->budget_bytes != REMAT_UNLIMITED;
    remat_program *whole;
    REMAT_TRY(trainer_build_program(cut->trainer, &whole));
    remat_status status = stage_cuts_find(whole, &cut->cuts);
    program_destroy(whole);
    REMAT_TRY(status);
    REMAT_TRY(check_count(cut));
    if (has_budget)
        stage_cuts_narrow(&cut->cuts, 4 * cut->stages);
    REMAT_TRY(stage_cuts_choose(&cut->cuts, cut->stages, chosen));
    if (has_budget)
        REMAT_TRY(find_within_budget(cut, chosen, places));
    for (size_t s = 0; s <= cut->stages; s++)
        starts[s] = layer_at(cut, chosen[s]);
    return REMAT_OK;
}

static remat_status check_starts(const remat_trainer *trainer, size_t stages, const uint32_t *starts)
{
    bool good = starts[0] == 0 && starts[stages] == trainer->network->layer_count;
    for (size_t s = 0; s < stages; s++)
        good &= starts[s] < starts[s + 1];
    return good ? REMAT_OK
                : remat_fail(trainer->context, REMAT_INVALID, NULL, "rank %" PRIu64 " has another model than rank 0",
                             trainer_rank(trainer));
}

static remat_status find_starts(cutter *cut, size_t *chosen, size_t *places, uint32_t *starts)
{
    remat_trainer *trainer = cut->trainer;
    if (!trainer->ranks)
        return choose(cut, chosen, places, starts);
    REMAT_TRY(
        trainer_share_status(trainer, trainer_rank(trainer) == 0 ? choose(cut, chosen, places, starts) : REMAT_OK));
    REMAT_TRY(comm_run(
        trainer->ranks,
        &(comm_transfer){.kind = COMM_BROADCAST, .data = starts, .bytes = (cut->stages + 1) * sizeof *starts}));
    return check_starts(trainer, cut->stages, starts);
}

static void warn_idle(const remat_trainer *trainer, size_t stages)
{
    const uint64_t each = trainer->settings.accumulate / trainer_row_count(trainer);
    if (each < stages && trainer_rank(trainer) == 0 && !trainer->options.plan_only)
        remat_warn(trainer->context, NULL,
                   "%" PRIu64
                   " micro-batches do not fill a pipeline of %zu stages: ranks idle for a large part of each "
                   "step; accumulate = %zu or more is better",
                   each, stages, 4 * stages * (size_t)trainer_row_count(trainer));
}

remat_status trainer_cut(remat_trainer *trainer)
{
    remat_context *context = trainer->context;
    cutter cut = {.trainer = trainer, .stages = trainer_stage_count(trainer)};
    const size_t room = cut.stages + 1, stage = trainer_stage(trainer);
    if (cut.stages == 1)
        return REMAT_OK;
    size_t *chosen = remat_alloc(context, room, sizeof *chosen), *places = remat_alloc(context, room, sizeof *places);
    uint32_t *starts = remat_alloc(context, room, sizeof *starts);
    remat_status status = chosen && places && starts ? find_starts(&cut, chosen, places, starts) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = trainer_set_stage(trainer, (uint32_t)cut.stages, (uint32_t)stage, starts,
                                   in_flight_of(trainer, cut.stages, stage));
    if (status == REMAT_OK)
        warn_idle(trainer, cut.stages);
    remat_release(context, chosen, room, sizeof *chosen);
    remat_release(context, places, room, sizeof *places);
    remat_release(context, starts, room, sizeof *starts);
    remat_release(context, cut.tries, cut.try_capacity, sizeof *cut.tries);
    stage_cuts_release(&cut.cuts);
    return status;
}
