/* From staircases back to steps. No choice was stored: along the plan each is found again by its cost. */
#include "plan/chain/optimal_table.h"

#include "base/alloc.h"

typedef enum task_kind { TASK_STATE, TASK_STEP, TASK_TAIL } task_kind;

/* What is still to be written, last first. */
typedef struct writer_task {
    task_kind kind;
    optimal_state state; /* TASK_STATE, TASK_TAIL */
    uint64_t memory;     /* TASK_STATE: what it may use */
    remat_step step;     /* TASK_STEP */
} writer_task;

typedef struct step_writer {
    remat_context *context;
    const optimal_table *table;
    const optimal_least *least;
    remat_step_fn visit;
    void *user;
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

static remat_status push_step(step_writer *writer, remat_op op, uint32_t layer)
{
    return push(writer, (writer_task){.kind = TASK_STEP, .step = {layer, REMAT_NO_SAVE, (uint8_t)op}});
}

static remat_status push_state(step_writer *writer, optimal_state state, uint64_t memory)
{
    task_kind kind = state.start > state.last ? TASK_TAIL : TASK_STATE;
    return push(writer, (writer_task){.kind = kind, .state = state, .memory = memory});
}

static remat_status write_step(step_writer *writer, remat_op op, uint32_t layer, uint16_t save)
{
    return writer->visit(writer->user, (remat_step){layer, save, (uint8_t)op});
}

static remat_status disagree(const step_writer *writer, optimal_state state)
{
    return remat_fail(writer->context, REMAT_INTERNAL, NULL,
                      "the optimal planner's table does not explain layers %u to %u; this is a defect", state.start,
                      state.last);
}

/* The tail's own step, where x_{last+1} is readable. */
static remat_status write_tail(step_writer *writer, optimal_state state)
{
    const optimal_model *model = writer->table->model;
    if (state.tail == TAIL_GRADIENT)
        return REMAT_OK;
    if (state.start == model->n)
        return write_step(writer, REMAT_LOSS, 0, REMAT_NO_SAVE);
    return write_step(writer, REMAT_BACKWARD, state.start, REMAT_NO_SAVE);
}

/* What drops x_i where it is held in a form. */
static remat_step drop_of(const optimal_model *model, uint32_t i, uint32_t form)
{
    bool inside = model->forms[form * model->n + i - 1].inside;
    return inside ? (remat_step){i - 1, REMAT_NO_SAVE, REMAT_DROP_STATE} : (remat_step){i, REMAT_NO_SAVE, REMAT_DROP_X};
}

static remat_status write_drop(step_writer *writer, uint32_t i, uint32_t form)
{
    return writer->visit(writer->user, drop_of(writer->table->model, i, form));
}

static const optimal_end *end_of(const step_writer *writer, optimal_state state)
{
    return optimal_ends_get(&writer->table->model->ends, state.start, state.end);
}

static remat_status expand_save(step_writer *writer, optimal_state state, const optimal_choice *choice, uint64_t memory)
{
    const remat_mode *mode = optimal_model_mode(writer->table->model, state.start, choice->mode);
    const optimal_end *end = end_of(writer, state);
    remat_status status = write_step(writer, REMAT_FORWARD, state.start, (uint16_t)choice->mode);
    if (status == REMAT_OK && end->kind == END_LEAVES)
        status = write_drop(writer, state.start, end->form);
    if (status == REMAT_OK && end->kind == END_STAYS)
        status = push_step(writer, REMAT_BACKWARD, state.start);
    if (status == REMAT_OK && !mode->holds_output)
        status = push_step(writer, REMAT_DROP_X, state.start + 1);
    if (status == REMAT_OK)
        status = push_state(writer, choice->right, memory - choice->offer.right_shift);
    return status;
}

/* Forward t in a form; an s that does not hold the output goes at once. */
static remat_status write_form(step_writer *writer, uint32_t t, uint32_t form)
{
    const optimal_model *model = writer->table->model;
    const optimal_form *how = &model->forms[form * model->n + t];
    remat_status status = write_step(writer, REMAT_FORWARD, t, how->save ? (uint16_t)(how->save - 1) : REMAT_NO_SAVE);
    if (status == REMAT_OK && how->save && !how->inside)
        status = write_step(writer, REMAT_DROP_STATE, t, REMAT_NO_SAVE);
    return status;
}

/* The forwards to x_cut; where it is x_start's last use, that goes after the first. */
static remat_status write_pass(step_writer *writer, optimal_state state, const optimal_choice *choice)
{
    remat_status status = REMAT_OK;
    for (uint32_t t = state.start; t < choice->cut && status == REMAT_OK; t++) {
        status = write_form(writer, t, t + 1 == choice->cut ? choice->form : choice->inner);
        if (status == REMAT_OK && t > state.start)
            status = write_drop(writer, t, choice->inner);
        else if (status == REMAT_OK && choice->kind == CHOICE_LAST_USE)
            status = write_drop(writer, t, end_of(writer, state)->form);
    }
    return status;
}

/* SPLIT and LAST_USE begin with a pass. */
static remat_status expand_pass(step_writer *writer, optimal_state state, const optimal_choice *choice, uint64_t memory)
{
    remat_status status = write_pass(writer, state, choice);
    if (status == REMAT_OK && choice->has_left)
        status = push_state(writer, choice->left, memory);
    if (status == REMAT_OK && choice->keeps) {
        remat_step drop = drop_of(writer->table->model, choice->cut, choice->form);
        status = push(writer, (writer_task){.kind = TASK_STEP, .step = drop});
    }
    if (status == REMAT_OK)
        status = push_state(writer, choice->right, memory - choice->offer.right_shift);
    return status;
}

static remat_status expand_choice(step_writer *writer, optimal_state state, const optimal_choice *choice,
                                  uint64_t memory)
{
    return choice->kind == CHOICE_SAVE ? expand_save(writer, state, choice, memory)
                                       : expand_pass(writer, state, choice, memory);
}

static optimal_state move_state(optimal_state state, uint32_t by)
{
    return (optimal_state){state.start + by, state.last + by, state.tail, state.end};
}

/* Looks for a choice. */
typedef struct choice_search {
    const step_writer *writer;
    uint64_t memory, cost; /* by cost: what the choice costs at this memory; by least: the best so far */
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

/* What a state may cost within memory; where no staircase reaches that low, a guess: all of it again for each layer. */
static uint64_t likely_cost(const step_writer *writer, optimal_state state, staircase stairs, uint64_t memory)
{
    if (stairs.count && stairs.memory[0] <= memory)
        return stairs.cost[stairs_at(stairs, memory)];
    const uint64_t *before = writer->table->model->forward_before;
    uint64_t once = before[state.last + 1] - before[state.start], guess;
    bool huge = __builtin_mul_overflow(once, state.last + (uint64_t)1 - state.start, &guess);
    return huge || guess > COST_LIMIT / 4 ? COST_LIMIT / 4 : guess;
}

static bool is_likeliest(void *context, const optimal_choice *choice)
{
    choice_search *search = context;
    const staircase_offer *offer = &choice->offer;
    const optimal_least *least = search->writer->least;
    uint64_t memory = search->memory;
    if (offer->floor > memory || optimal_least_of(least, choice->right) + offer->right_shift > memory ||
        (choice->has_left && optimal_least_of(least, choice->left) > memory))
        return false;
    uint64_t cost = offer->cost + likely_cost(search->writer, choice->right, offer->right, memory - offer->right_shift);
    if (choice->has_left)
        cost += likely_cost(search->writer, choice->left, offer->left, memory);
    if (cost < search->cost) {
        search->cost = cost;
        search->choice = *choice;
        search->found = true;
    }
    return false;
}

/* Below the staircases: of all cuts, those that the least memories allow, the likely cheapest. */
static remat_status expand_by_least(step_writer *writer, optimal_state state, uint64_t memory)
{
    size_t places = 0;
    for (uint32_t j = state.start + 1; j <= state.last; j++)
        writer->places[places++] = j;
    optimal_interval interval = {state.start, state.last};
    size_t splits = optimal_list_splits(writer->table, interval, writer->places, places, true, writer->splits);
    choice_search search = {.writer = writer, .memory = memory, .cost = UINT64_MAX};
    optimal_each_choice(writer->table, state, writer->splits, splits, true, is_likeliest, &search);
    return search.found ? expand_choice(writer, state, &search.choice, memory) : disagree(writer, state);
}

/* Finds the choice that made the corner this state uses within memory, and writes it. The choices of a repeated
 * interval were made where it occurs first: they are listed there and moved. */
static remat_status expand_state(step_writer *writer, optimal_state state, uint64_t memory)
{
    const optimal_table *table = writer->table;
    staircase stairs = optimal_table_stairs(table, state);
    if (stairs.count == 0 || stairs.memory[0] > memory)
        return writer->least ? expand_by_least(writer, state, memory) : disagree(writer, state);
    size_t corner = stairs_at(stairs, memory);
    uint32_t moved = state.start - (uint32_t)optimal_model_canonical_start(table->model, state.start, state.last);
    optimal_interval interval = {state.start - moved, state.last - moved};
    optimal_state first = {interval.start, interval.last, state.tail, state.end};
    size_t places = optimal_intervals_cuts(&table->intervals, interval, writer->places);
    size_t splits = optimal_list_splits(table, interval, writer->places, places, false, writer->splits);
    choice_search search = {.writer = writer, .memory = stairs.memory[corner], .cost = stairs.cost[corner]};
    optimal_each_choice(table, first, writer->splits, splits, false, has_cost, &search);
    if (!search.found)
        return disagree(writer, state);
    search.choice.cut += moved;
    search.choice.right = move_state(search.choice.right, moved);
    search.choice.left = move_state(search.choice.left, moved);
    return expand_choice(writer, state, &search.choice, search.memory);
}

static remat_status write_all(step_writer *writer)
{
    remat_status status = REMAT_OK;
    while (status == REMAT_OK && writer->count > 0) {
        writer_task task = writer->tasks[--writer->count];
        if (task.kind == TASK_STATE)
            status = expand_state(writer, task.state, task.memory);
        else if (task.kind == TASK_TAIL)
            status = write_tail(writer, task.state);
        else
            status = writer->visit(writer->user, task.step);
    }
    return status;
}

static remat_status write_plan(step_writer *writer, optimal_state root, uint64_t memory)
{
    size_t n = writer->table->model->n, most = optimal_most_splits(writer->table);
    writer->places = remat_alloc(writer->context, n + 1, sizeof *writer->places);
    writer->splits = remat_alloc(writer->context, most, sizeof *writer->splits);
    remat_status status = REMAT_NO_MEMORY;
    if (writer->places && writer->splits)
        status = push_state(writer, root, memory);
    if (status == REMAT_OK)
        status = write_all(writer);
    remat_release(writer->context, writer->places, n + 1, sizeof *writer->places);
    remat_release(writer->context, writer->splits, most, sizeof *writer->splits);
    remat_release(writer->context, writer->tasks, writer->capacity, sizeof *writer->tasks);
    return status;
}

remat_status optimal_table_plan(remat_context *context, const optimal_table *table, const optimal_least *least,
                                uint64_t budget, remat_step_fn visit, void *user)
{
    step_writer writer = {.context = context, .table = table, .least = least, .visit = visit, .user = user};
    optimal_state root = {0, (uint32_t)table->model->n - 1, TAIL_LOSS, 0};
    return write_plan(&writer, root, budget - table->model->x[0]);
}
