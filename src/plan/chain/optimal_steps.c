/* From staircases back to steps. No choice was stored: along the plan each is found again by its cost. */
#include "plan/chain/optimal_table.h"

#include "base/alloc.h"
#include "base/checked.h"

/* What is still to be written, last first: a state, or a step. */
typedef struct writer_task {
    bool is_step;
    optimal_state state;
    uint64_t memory; /* that the state may use */
    remat_step step;
} writer_task;

typedef struct step_writer {
    remat_context *context;
    const optimal_table *table;
    const least_memory *least;
    remat_step_fn visit;
    void *user;
    uint64_t cost; /* of what was written and pushed */
    writer_task *tasks;
    size_t count, capacity;
    uint32_t *places;
    optimal_split *splits;
} step_writer;

static remat_status push(step_writer *writer, writer_task task)
{
    void *tasks = writer->tasks;
    REMAT_TRY(remat_grow(writer->context, &tasks, &writer->capacity, writer->count + 1, sizeof task));
    writer->tasks = tasks;
    writer->tasks[writer->count++] = task;
    return REMAT_OK;
}

static remat_status push_step(step_writer *writer, remat_step step)
{
    return push(writer, (writer_task){.is_step = true, .step = step});
}

static remat_status push_state(step_writer *writer, optimal_state state, uint64_t memory)
{
    return push(writer, (writer_task){.state = state, .memory = memory});
}

static void add_cost(step_writer *writer, uint64_t cost)
{
    if (!remat_add(&writer->cost, cost) || writer->cost > COST_LIMIT)
        writer->cost = COST_LIMIT;
}

/* What is pending at state.start, where x of it is readable. */
static remat_status write_pending(step_writer *writer, optimal_state state)
{
    if (state.pending == PENDING_GRADIENT)
        return REMAT_OK;
    uint64_t memory, cost;
    optimal_pending_step(writer->table->model, state.start, state.pending, &memory, &cost);
    add_cost(writer, cost);
    remat_step backward = {state.start, REMAT_NO_SAVE, REMAT_BACKWARD}, loss = {0, REMAT_NO_SAVE, REMAT_LOSS};
    return writer->visit(writer->user, state.start == writer->table->model->n ? loss : backward);
}

/* What drops x_i where it is held in a form. */
static remat_step drop_of(const optimal_model *model, uint32_t i, uint32_t form)
{
    bool inside = model->forms[form * model->n + i - 1].inside;
    return inside ? (remat_step){i - 1, REMAT_NO_SAVE, REMAT_DROP_STATE} : (remat_step){i, REMAT_NO_SAVE, REMAT_DROP_X};
}

static remat_status expand_save(step_writer *writer, optimal_state state, const optimal_choice *choice, uint64_t memory)
{
    const optimal_model *model = writer->table->model;
    REMAT_TRY(writer->visit(writer->user, (remat_step){state.start, (uint16_t)choice->mode, REMAT_FORWARD}));
    if (state.rest)
        REMAT_TRY(writer->visit(writer->user, drop_of(model, state.start, optimal_rest_of(model, state).form)));
    else
        REMAT_TRY(push_step(writer, (remat_step){state.start, REMAT_NO_SAVE, REMAT_BACKWARD}));
    if (!optimal_model_mode(model, state.start, choice->mode)->holds_output)
        REMAT_TRY(push_step(writer, (remat_step){state.start + 1, REMAT_NO_SAVE, REMAT_DROP_X}));
    return push_state(writer, choice->right, memory - choice->offer.right_shift);
}

/* The forwards to x_cut; where they are x_start's last use, that goes after the first. */
static remat_status write_pass(step_writer *writer, optimal_state state, const optimal_choice *choice)
{
    const optimal_model *model = writer->table->model;
    for (uint32_t t = state.start; t < choice->cut; t++) {
        uint32_t save = model->forms[choice->form * model->n + t].save;
        REMAT_TRY(
            writer->visit(writer->user, (remat_step){t, save ? (uint16_t)(save - 1) : REMAT_NO_SAVE, REMAT_FORWARD}));
        if (t > state.start)
            REMAT_TRY(writer->visit(writer->user, drop_of(model, t, choice->form)));
        else if (choice->kind == CHOICE_LAST_USE)
            REMAT_TRY(writer->visit(writer->user, drop_of(model, t, optimal_rest_of(model, state).form)));
    }
    return REMAT_OK;
}

static remat_status expand_choice(step_writer *writer, optimal_state state, const optimal_choice *choice,
                                  uint64_t memory)
{
    add_cost(writer, choice->offer.cost);
    if (choice->kind == CHOICE_SAVE)
        return expand_save(writer, state, choice, memory);
    REMAT_TRY(write_pass(writer, state, choice));
    if (choice->kind == CHOICE_SPLIT)
        REMAT_TRY(push_state(writer, choice->left, memory));
    if (choice->keeps)
        REMAT_TRY(push_step(writer, drop_of(writer->table->model, choice->cut, choice->form)));
    return push_state(writer, choice->right, memory - choice->offer.right_shift);
}

static remat_status disagree(const step_writer *writer, optimal_state state)
{
    return remat_fail(writer->context, REMAT_INTERNAL, NULL,
                      "the optimal planner's table does not explain layers %u to %u; this is a defect", state.start,
                      state.last);
}

/* ---- below the staircases ---- */

/* What a state may cost within memory; where no staircase reaches that low, a guess: all of it for each layer. */
static uint64_t likely_cost(const step_writer *writer, optimal_state state, uint64_t memory)
{
    staircase stairs = optimal_table_stairs(writer->table, state);
    if (stairs.count && stairs.memory[0] <= memory)
        return stairs.cost[stairs_at(stairs, memory)];
    uint64_t guess = 0;
    for (size_t i = state.start; i <= state.last; i++)
        guess += writer->table->model->forms[i].cost;
    bool huge = __builtin_mul_overflow(guess, state.last + (uint64_t)1 - state.start, &guess);
    return huge ? COST_LIMIT / 4 : remat_min(guess, COST_LIMIT / 4);
}

/* Takes the choice if the least memories allow it and it is likely to be cheaper than the best so far. */
static void try_guided(const step_writer *writer, optimal_choice choice, uint64_t memory, uint64_t *best_cost,
                       optimal_choice *best)
{
    const staircase_offer *offer = &choice.offer;
    bool split = choice.kind == CHOICE_SPLIT;
    if (offer->floor > memory || least_memory_of(writer->least, choice.right) + offer->right_shift > memory ||
        (split && least_memory_of(writer->least, choice.left) > memory))
        return;
    uint64_t cost = offer->cost + likely_cost(writer, choice.right, memory - offer->right_shift) +
                    (split ? likely_cost(writer, choice.left, memory) : 0);
    if (cost < *best_cost) {
        *best_cost = cost;
        *best = choice;
    }
}

/* Of all cuts the likely cheapest one that the least memories allow. */
static remat_status expand_guided(step_writer *writer, optimal_state state, uint64_t memory)
{
    const optimal_model *model = writer->table->model;
    uint64_t best_cost = UINT64_MAX, pending = optimal_pending_bytes(model, state.last + (size_t)1, state.pending);
    optimal_choice best = {0}, choice = {.kind = CHOICE_SAVE, .right = {state.start + 1, state.last, state.pending, 0}};
    for (; choice.mode < model->mode_limit; choice.mode++)
        if (optimal_save_figures(model, state, choice.mode, &choice.offer.floor, &choice.offer.right_shift,
                                 &choice.offer.cost))
            try_guided(writer, choice, memory, &best_cost, &best);
    optimal_pass pass = {0};
    choice = (optimal_choice){.kind = CHOICE_SPLIT, .keeps = true};
    for (uint32_t cut = state.start + 1; cut <= state.last + (state.pending == PENDING_LOSS); cut++) {
        optimal_pass_extend(model, FORM_PLAIN, state.start, cut - 1, &pass);
        choice.cut = cut;
        choice.right = (optimal_state){cut, state.last, state.pending, 0};
        choice.left = (optimal_state){state.start, cut - 1, PENDING_GRADIENT, 0};
        choice.offer.right_shift = optimal_model_x(model, cut, FORM_PLAIN);
        choice.offer.floor = remat_max(pass.first, pass.rest) + pending;
        choice.offer.cost = pass.cost;
        try_guided(writer, choice, memory, &best_cost, &best);
    }
    return best_cost < UINT64_MAX ? expand_choice(writer, state, &best, memory) : disagree(writer, state);
}

/* ---- along the staircases ---- */

/* Looks for the choice that costs this much at this memory. */
typedef struct choice_search {
    uint64_t memory, cost;
    bool found;
    optimal_choice choice;
} choice_search;

static bool has_cost(void *context, const optimal_choice *choice)
{
    choice_search *search = context;
    if (offer_cost_at(&choice->offer, search->memory) != search->cost)
        return false;
    search->choice = *choice;
    search->found = true;
    return true;
}

static optimal_state move_state(optimal_state state, uint32_t by)
{
    return (optimal_state){state.start + by, state.last + by, state.pending, state.rest};
}

/* Finds the choice that made the corner which this state uses within memory, and writes it. The choices of a repeated
 * interval were made where it occurs first: they are listed there and moved. */
static remat_status expand_state(step_writer *writer, optimal_state state, uint64_t memory)
{
    const optimal_table *table = writer->table;
    if (state.start > state.last)
        return write_pending(writer, state);
    staircase stairs = optimal_table_stairs(table, state);
    if (stairs.count == 0 || stairs.memory[0] > memory)
        return writer->least && state.rest == 0 ? expand_guided(writer, state, memory) : disagree(writer, state);
    size_t corner = stairs_at(stairs, memory);
    uint32_t moved = state.start - (uint32_t)optimal_model_canonical_start(table->model, state.start, state.last);
    optimal_interval interval = {state.start - moved, state.last - moved};
    optimal_state first = {interval.start, interval.last, state.pending, state.rest};
    choice_search search = {.memory = stairs.memory[corner], .cost = stairs.cost[corner]};
    optimal_each_choice(table, first, NULL, 0, has_cost, &search);
    if (!search.found) { /* listing the splits takes the longest */
        size_t places = optimal_intervals_cuts(&table->intervals, interval, writer->places);
        size_t splits = optimal_list_splits(table, interval, writer->places, places, writer->splits);
        optimal_each_choice(table, first, writer->splits, splits, has_cost, &search);
    }
    if (!search.found)
        return disagree(writer, state);
    search.choice.cut += moved;
    search.choice.right = move_state(search.choice.right, moved);
    search.choice.left = move_state(search.choice.left, moved);
    return expand_choice(writer, state, &search.choice, search.memory);
}

static remat_status write_all(step_writer *writer, optimal_state root, uint64_t memory)
{
    remat_status status = push_state(writer, root, memory);
    while (status == REMAT_OK && writer->count > 0) {
        writer_task task = writer->tasks[--writer->count];
        status = task.is_step ? writer->visit(writer->user, task.step) : expand_state(writer, task.state, task.memory);
    }
    return status;
}

remat_status optimal_table_plan(remat_context *context, const optimal_table *table, const least_memory *least,
                                uint64_t budget, remat_step_fn visit, void *user, uint64_t *cost)
{
    step_writer writer = {.context = context, .table = table, .least = least, .visit = visit, .user = user};
    size_t n = table->model->n, most = optimal_most_splits(table);
    optimal_state root = {0, (uint32_t)n - 1, PENDING_LOSS, 0};
    remat_status status = REMAT_NO_MEMORY;
    writer.places = remat_alloc(context, n + 1, sizeof *writer.places);
    writer.splits = remat_alloc(context, most, sizeof *writer.splits);
    if (writer.places && writer.splits)
        status = write_all(&writer, root, budget - table->model->chain->input_bytes);
    remat_release(context, writer.places, n + 1, sizeof *writer.places);
    remat_release(context, writer.splits, most, sizeof *writer.splits);
    remat_release(context, writer.tasks, writer.capacity, sizeof *writer.tasks);
    if (cost)
        *cost = writer.cost;
    return status;
}
