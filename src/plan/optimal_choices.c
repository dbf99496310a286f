#include "plan/optimal_choices.h"

#include "base/alloc.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool ends_chain(const optimal_model *model, optimal_state state)
{
    return (size_t)state.last + 1 == model->n;
}

bool optimal_state_exists(const optimal_model *model, optimal_state state)
{
    if (state.end != END_DONE && !optimal_model_mode(model, state.start, state.end - END_LATE))
        return false;
    if (state.tail == TAIL_GRADIENT)
        return true;
    if (ends_chain(model, state))
        return state.tail == TAIL_LOSS;
    return optimal_model_mode(model, (size_t)state.last + 1, state.tail - TAIL_LATE) != NULL;
}

/* Bytes the tail holds from the start. */
uint64_t optimal_tail_bytes(const optimal_model *model, optimal_state state)
{
    size_t behind = (size_t)state.last + 1;
    if (state.tail == TAIL_GRADIENT)
        return model->y[behind];
    if (behind == model->n)
        return 0;
    return optimal_model_mode(model, behind, state.tail - TAIL_LATE)->activation_bytes + model->y[behind + 1];
}

/* Bytes and cost of the tail's own step, once x_{last+1} is live; x itself is not counted. */
void optimal_tail_step(const optimal_model *model, size_t behind, uint32_t tail, uint64_t *memory, uint64_t *cost)
{
    *memory = model->y[behind];
    *cost = 0;
    if (tail == TAIL_GRADIENT)
        return;
    if (behind == model->n) {
        *memory += model->chain->loss_workspace_bytes;
        return;
    }
    const remat_mode *mode = optimal_model_mode(model, behind, tail - TAIL_LATE);
    if (!mode) {
        *memory = MEMORY_END;
        return;
    }
    *memory += mode->activation_bytes + model->y[behind + 1] + mode->backward_workspace_bytes;
    *cost = mode->backward_cost;
}

remat_status optimal_table_fill_empty(remat_context *context, optimal_table *table)
{
    const optimal_model *model = table->model;
    table->empty = remat_alloc(context, (model->n + 1) * table->per_side * 3, sizeof *table->empty);
    if (!table->empty)
        return REMAT_NO_MEMORY;
    for (size_t behind = 1; behind <= model->n; behind++)
        for (uint32_t tail = 0; tail < table->per_side; tail++) {
            uint64_t *corner = table->empty + (behind * table->per_side + tail) * 3;
            optimal_tail_step(model, behind, tail, &corner[0], &corner[2]);
            corner[1] = MEMORY_END;
        }
    return REMAT_OK;
}

static staircase empty_stairs(const optimal_table *table, optimal_state state)
{
    const uint64_t *corner = table->empty + ((size_t)state.start * table->per_side + state.tail) * 3;
    return (staircase){corner, corner + 2, corner[0] == MEMORY_END ? 0 : 1};
}

static staircase numbered_stairs(const optimal_table *table, uint32_t number, uint32_t tail, uint32_t end)
{
    if (number == NO_INTERVAL)
        return (staircase){0};
    return table->stairs[((size_t)number * table->per_side + tail) * table->per_side + end];
}

staircase optimal_table_stairs(const optimal_table *table, optimal_state state)
{
    if (state.start > state.last)
        return empty_stairs(table, state);
    return numbered_stairs(table, optimal_intervals_find(&table->intervals, state.start, state.last), state.tail,
                           state.end);
}

size_t optimal_list_cuts(const optimal_table *table, optimal_interval interval, uint32_t *places, optimal_cut *cuts)
{
    size_t count = optimal_intervals_cuts(&table->intervals, interval, places);
    for (size_t c = 0; c < count; c++)
        cuts[c] = (optimal_cut){places[c], optimal_intervals_find(&table->intervals, places[c], interval.last),
                                optimal_intervals_find(&table->intervals, interval.start, places[c] - (size_t)1),
                                optimal_model_run_peak(table->model, interval.start, places[c])};
    return count;
}

size_t optimal_most_choices(const optimal_table *table, size_t cut_count)
{
    return (cut_count + 2) * table->per_side;
}

bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost)
{
    const remat_mode *mode = optimal_model_mode(model, state.start, q);
    if (!mode || (state.end != END_DONE && state.end != END_LATE + q))
        return false;
    uint64_t base = state.end == END_DONE ? 0 : model->x[state.start];
    *shift = mode->activation_bytes + (mode->holds_output ? 0 : model->x[state.start + 1]);
    *floor = base + optimal_tail_bytes(model, state) + *shift + mode->forward_workspace_bytes;
    *cost = mode->forward_cost;
    if (state.end == END_DONE) {
        *floor = larger(*floor, mode->activation_bytes + model->y[state.start + 1] + model->y[state.start] +
                                    mode->backward_workspace_bytes);
        *cost += mode->backward_cost;
    }
    return true;
}

/* Choice 1: forward start saving in a mode, go on from the next layer, then backward start. */
static bool save_first(const optimal_table *table, optimal_state state, uint32_t q, optimal_choice *choice)
{
    *choice = (optimal_choice){.kind = CHOICE_SAVE, .mode = q, .cut = state.start + 1};
    staircase_offer *offer = &choice->offer;
    if (!optimal_save_figures(table->model, state, q, &offer->floor, &offer->right_shift, &offer->cost))
        return false;
    choice->right = (optimal_state){state.start + 1, state.last, state.tail, END_DONE};
    offer->right = optimal_table_stairs(table, choice->right);
    offer->left = stairs_nothing();
    return true;
}

/* Choice 2: forward start..cut-1, keep x_cut while the right part runs, then the left part.
 * With cut = last + 1 the right part is only the tail's own step: choice 4. */
static void keep_input(const optimal_table *table, optimal_state state, const optimal_cut *cut, optimal_choice *choice)
{
    const optimal_model *model = table->model;
    uint64_t base = state.end == END_DONE ? 0 : model->x[state.start];
    *choice = (optimal_choice){.kind = CHOICE_KEEP_INPUT, .cut = cut->cut};
    choice->right = (optimal_state){cut->cut, state.last, state.tail, END_DONE};
    choice->left = (optimal_state){state.start, cut->cut - 1, TAIL_GRADIENT, state.end};
    staircase right = cut->cut > state.last ? empty_stairs(table, choice->right)
                                            : numbered_stairs(table, cut->right, state.tail, END_DONE);
    choice->offer =
        (staircase_offer){right, numbered_stairs(table, cut->left, TAIL_GRADIENT, state.end), model->x[cut->cut] + base,
                          cut->run_peak + base + optimal_tail_bytes(model, state),
                          model->forward_before[cut->cut] - model->forward_before[state.start]};
}

/* Choice 3: as choice 2, but x_cut goes, and backward cut waits until the left part makes it again. */
static void late_input(const optimal_table *table, optimal_state state, const optimal_cut *cut, uint32_t q,
                       optimal_choice *choice)
{
    const optimal_model *model = table->model;
    uint64_t base = state.end == END_DONE ? 0 : model->x[state.start];
    *choice = (optimal_choice){.kind = CHOICE_LATE_INPUT, .mode = q, .cut = cut->cut};
    choice->right = (optimal_state){cut->cut, state.last, state.tail, END_LATE + q};
    choice->left = (optimal_state){state.start, cut->cut - 1, TAIL_LATE + q, state.end};
    choice->offer = (staircase_offer){numbered_stairs(table, cut->right, state.tail, END_LATE + q),
                                      numbered_stairs(table, cut->left, TAIL_LATE + q, state.end), base,
                                      cut->run_peak + base + optimal_tail_bytes(model, state),
                                      model->forward_before[cut->cut] - model->forward_before[state.start]};
}

size_t optimal_list_choices(const optimal_table *table, optimal_state state, const optimal_cut *cuts, size_t cut_count,
                            optimal_choice *choices)
{
    const optimal_model *model = table->model;
    size_t count = 0;
    for (uint32_t q = 0; q + 1 < table->per_side; q++)
        count += save_first(table, state, q, &choices[count]);
    if (state.tail != TAIL_GRADIENT) {
        optimal_cut whole = {state.last + 1, NO_INTERVAL,
                             optimal_intervals_find(&table->intervals, state.start, state.last),
                             optimal_model_run_peak(model, state.start, (size_t)state.last + 1)};
        keep_input(table, state, &whole, &choices[count++]);
    }
    for (size_t c = 0; c < cut_count; c++) {
        keep_input(table, state, &cuts[c], &choices[count++]);
        for (uint32_t q = 0; q + 1 < table->per_side; q++)
            if (optimal_model_mode(model, cuts[c].cut, q))
                late_input(table, state, &cuts[c], q, &choices[count++]);
    }
    return count;
}
