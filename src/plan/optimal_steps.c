/* From staircases back to steps. No choice was stored: along the plan each is found again by its cost. */
#include "plan/optimal_table.h"

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
    optimal_cut *cuts;
    optimal_choice *choices;
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

/* The tail's own step, where x_{last+1} is live. */
static remat_status write_tail(step_writer *writer, optimal_state state)
{
    if (state.tail == TAIL_GRADIENT)
        return REMAT_OK;
    if (state.start == writer->table->model->n)
        return write_step(writer, REMAT_LOSS, 0, REMAT_NO_SAVE);
    return write_step(writer, REMAT_BACKWARD, state.start, REMAT_NO_SAVE);
}

static remat_status expand_save(step_writer *writer, optimal_state state, const optimal_choice *choice, uint64_t memory)
{
    const remat_mode *mode = optimal_model_mode(writer->table->model, state.start, choice->mode);
    remat_status status = write_step(writer, REMAT_FORWARD, state.start, (uint16_t)choice->mode);
    if (status == REMAT_OK && state.end != END_DONE)
        status = write_step(writer, REMAT_DROP_X, state.start, REMAT_NO_SAVE);
    if (status == REMAT_OK && state.end == END_DONE)
        status = push_step(writer, REMAT_BACKWARD, state.start);
    if (status == REMAT_OK && !mode->holds_output)
        status = push_step(writer, REMAT_DROP_X, state.start + 1);
    if (status == REMAT_OK)
        status = push_state(writer, choice->right, memory - choice->offer.right_shift);
    return status;
}

static remat_status expand_split(step_writer *writer, optimal_state state, const optimal_choice *choice,
                                 uint64_t memory)
{
    remat_status status = REMAT_OK;
    for (uint32_t k = state.start; k < choice->cut && status == REMAT_OK; k++) {
        status = write_step(writer, REMAT_FORWARD, k, REMAT_NO_SAVE);
        if (k > state.start && status == REMAT_OK)
            status = write_step(writer, REMAT_DROP_X, k, REMAT_NO_SAVE);
    }
    if (status == REMAT_OK)
        status = push_state(writer, choice->left, memory);
    if (status == REMAT_OK && choice->kind == CHOICE_KEEP_INPUT)
        status = push_step(writer, REMAT_DROP_X, choice->cut);
    if (status == REMAT_OK)
        status = push_state(writer, choice->right, memory - choice->offer.right_shift);
    return status;
}

static optimal_state move_state(optimal_state state, uint32_t by)
{
    return (optimal_state){state.start + by, state.last + by, state.tail, state.end};
}

/* The choices of a repeated interval were made where it occurs first: lists them there. */
static size_t list_choices_here(step_writer *writer, optimal_state state, uint32_t *moved)
{
    *moved = state.start - (uint32_t)optimal_model_canonical_start(writer->table->model, state.start, state.last);
    optimal_state first = {state.start - *moved, state.last - *moved, state.tail, state.end};
    optimal_interval interval = {first.start, first.last};
    size_t cuts = optimal_list_cuts(writer->table, interval, writer->places, writer->cuts);
    return optimal_list_choices(writer->table, first, writer->cuts, cuts, writer->choices);
}

static remat_status expand_choice(step_writer *writer, optimal_state state, const optimal_choice *choice,
                                  uint64_t memory)
{
    return choice->kind == CHOICE_SAVE ? expand_save(writer, state, choice, memory)
                                       : expand_split(writer, state, choice, memory);
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

static bool choice_fits(const step_writer *writer, const optimal_choice *choice, uint64_t memory)
{
    return choice->offer.floor <= memory &&
           optimal_least_of(writer->least, choice->right) + choice->offer.right_shift <= memory &&
           (choice->kind == CHOICE_SAVE || optimal_least_of(writer->least, choice->left) <= memory);
}

/* Below the staircases: of all cuts, those that the least memories allow, the likely cheapest. */
static remat_status expand_by_least(step_writer *writer, optimal_state state, uint64_t memory)
{
    const optimal_intervals *intervals = &writer->table->intervals;
    size_t cuts = 0, best = SIZE_MAX;
    uint64_t best_cost = UINT64_MAX;
    if (!writer->least)
        return disagree(writer, state);
    for (uint32_t j = state.start + 1; j <= state.last; j++)
        writer->cuts[cuts++] = (optimal_cut){j, optimal_intervals_find(intervals, j, state.last),
                                             optimal_intervals_find(intervals, state.start, j - (size_t)1),
                                             optimal_model_run_peak(writer->table->model, state.start, j)};
    size_t count = optimal_list_choices(writer->table, state, writer->cuts, cuts, writer->choices);
    for (size_t c = 0; c < count; c++) {
        const optimal_choice *choice = &writer->choices[c];
        if (!choice_fits(writer, choice, memory))
            continue;
        uint64_t cost =
            choice->offer.cost +
            likely_cost(writer, choice->right, choice->offer.right, memory - choice->offer.right_shift) +
            (choice->kind == CHOICE_SAVE ? 0 : likely_cost(writer, choice->left, choice->offer.left, memory));
        if (cost < best_cost) {
            best_cost = cost;
            best = c;
        }
    }
    if (best == SIZE_MAX)
        return disagree(writer, state);
    return expand_choice(writer, state, &writer->choices[best], memory);
}

/* Finds the choice that made the corner this state uses within memory, and writes it. */
static remat_status expand_state(step_writer *writer, optimal_state state, uint64_t memory)
{
    staircase stairs = optimal_table_stairs(writer->table, state);
    if (stairs.count == 0 || stairs.memory[0] > memory)
        return expand_by_least(writer, state, memory);
    size_t corner = stairs_at(stairs, memory);
    uint64_t exact = stairs.memory[corner], cost = stairs.cost[corner];
    uint32_t moved;
    size_t count = list_choices_here(writer, state, &moved);
    for (size_t c = 0; c < count; c++) {
        optimal_choice *choice = &writer->choices[c];
        if (offer_cost_at(&choice->offer, exact) != cost)
            continue;
        choice->cut += moved;
        choice->right = move_state(choice->right, moved);
        choice->left = move_state(choice->left, moved);
        return expand_choice(writer, state, choice, exact);
    }
    return disagree(writer, state);
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
    size_t n = writer->table->model->n, most = optimal_most_choices(writer->table, n);
    writer->places = remat_alloc(writer->context, n + 1, sizeof *writer->places);
    writer->cuts = remat_alloc(writer->context, n + 1, sizeof *writer->cuts);
    writer->choices = remat_alloc(writer->context, most, sizeof *writer->choices);
    remat_status status = REMAT_NO_MEMORY;
    if (writer->places && writer->cuts && writer->choices)
        status = push_state(writer, root, memory);
    if (status == REMAT_OK)
        status = write_all(writer);
    remat_release(writer->context, writer->places, n + 1, sizeof *writer->places);
    remat_release(writer->context, writer->cuts, n + 1, sizeof *writer->cuts);
    remat_release(writer->context, writer->choices, most, sizeof *writer->choices);
    remat_release(writer->context, writer->tasks, writer->capacity, sizeof *writer->tasks);
    return status;
}

remat_status optimal_table_plan(remat_context *context, const optimal_table *table, const optimal_least *least,
                                uint64_t budget, remat_step_fn visit, void *user)
{
    step_writer writer = {.context = context, .table = table, .least = least, .visit = visit, .user = user};
    optimal_state root = {0, (uint32_t)table->model->n - 1, TAIL_LOSS, END_DONE};
    return write_plan(&writer, root, budget - table->model->x[0]);
}
