#include "plan/chain/optimal_choices.h"

#include "base/alloc.h"

#include <string.h>

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static const optimal_end *end_of(const optimal_model *model, optimal_state state)
{
    return optimal_ends_get(&model->ends, state.start, state.end);
}

/* k of LEAVES(k, .), and of the others the start. */
static uint32_t end_place(optimal_state state, const optimal_end *end)
{
    return state.start + end->ahead;
}

bool optimal_state_exists(const optimal_model *model, optimal_state state)
{
    if (!optimal_tail_exists(model, (size_t)state.last + 1, state.tail))
        return false;
    return state.tail != TAIL_GRADIENT || end_place(state, end_of(model, state)) <= state.last;
}

uint64_t optimal_state_base(const optimal_model *model, optimal_state state)
{
    const optimal_end *end = end_of(model, state);
    return end->kind == END_LEAVES ? optimal_model_x(model, state.start, end->form) : 0;
}

static uint64_t state_tail_bytes(const optimal_model *model, optimal_state state)
{
    return optimal_tail_bytes(model, (size_t)state.last + 1, state.tail);
}

/* ---- the table ---- */

remat_status optimal_table_number_states(remat_context *context, optimal_table *table)
{
    const optimal_intervals *intervals = &table->intervals;
    size_t count = intervals->count, total = 0;
    table->tails = optimal_tail_limit(table->model);
    table->first_state = remat_alloc(context, count + 1, sizeof *table->first_state);
    table->end_count = remat_alloc(context, count, sizeof *table->end_count);
    if (!table->first_state || !table->end_count)
        return REMAT_NO_MEMORY;
    for (size_t k = 0; k < count; k++) {
        optimal_interval interval = intervals->list[k];
        uint32_t number = optimal_intervals_find(intervals, interval.start, interval.last);
        table->end_count[number] = optimal_ends_count(&table->model->ends, interval.start, interval.last);
    }
    for (size_t k = 0; k < count; k++) {
        table->first_state[k] = total;
        total += (size_t)table->end_count[k] * table->tails;
    }
    table->first_state[count] = total;
    table->stairs = remat_alloc(context, total, sizeof *table->stairs);
    if (!table->stairs)
        return REMAT_NO_MEMORY;
    memset(table->stairs, 0, total * sizeof *table->stairs);
    return REMAT_OK;
}

remat_status optimal_table_fill_empty(remat_context *context, optimal_table *table)
{
    const optimal_model *model = table->model;
    table->empty = remat_alloc(context, (model->n + 1) * table->tails * 3, sizeof *table->empty);
    if (!table->empty)
        return REMAT_NO_MEMORY;
    for (size_t behind = 1; behind <= model->n; behind++)
        for (uint32_t tail = 0; tail < table->tails; tail++) {
            uint64_t *corner = table->empty + (behind * table->tails + tail) * 3;
            corner[0] = corner[1] = MEMORY_END;
            if (optimal_tail_exists(model, behind, tail))
                optimal_tail_step(model, behind, tail, &corner[0], &corner[2]);
        }
    return REMAT_OK;
}

static staircase empty_stairs(const optimal_table *table, optimal_state state)
{
    const uint64_t *corner = table->empty + ((size_t)state.start * table->tails + state.tail) * 3;
    return (staircase){corner, corner + 2, corner[0] == MEMORY_END ? 0 : 1};
}

static staircase numbered_stairs(const optimal_table *table, uint32_t number, uint32_t tail, uint32_t end)
{
    if (number == NO_INTERVAL || end >= table->end_count[number])
        return (staircase){0};
    return table->stairs[table->first_state[number] + (size_t)tail * table->end_count[number] + end];
}

size_t optimal_table_state_number(const optimal_table *table, optimal_state state)
{
    uint32_t number = optimal_intervals_find(&table->intervals, state.start, state.last);
    return table->first_state[number] + (size_t)state.tail * table->end_count[number] + state.end;
}

staircase optimal_table_stairs(const optimal_table *table, optimal_state state)
{
    if (state.start > state.last)
        return empty_stairs(table, state);
    return numbered_stairs(table, optimal_intervals_find(&table->intervals, state.start, state.last), state.tail,
                           state.end);
}

/* ---- splits ---- */

size_t optimal_most_splits(const optimal_table *table)
{
    size_t forms = table->model->form_limit;
    return forms * forms * (table->model->n + 1) + forms * table->model->ends.count;
}

/* A place to split at while its ways are listed. */
typedef struct split_lister {
    const optimal_table *table;
    optimal_interval interval;
    optimal_split *splits;
    size_t count;
    uint32_t cut, right;
    bool all;
} split_lister;

/* Every inner form of the pass to x_cut in one form. */
static void add_splits(split_lister *lister, optimal_split split)
{
    const optimal_model *model = lister->table->model;
    for (split.inner = 0; split.inner < model->form_limit; split.inner++) {
        optimal_pass pass = optimal_model_pass(model, lister->interval.start, split.cut, split.form, split.inner);
        split.peak = larger(pass.first, pass.rest);
        split.cost = pass.cost;
        lister->splits[lister->count++] = split;
        if (split.cut == lister->interval.start + 1)
            return; /* nothing between */
    }
}

/* x_cut is kept: the left part ends before it with a gradient. */
static void add_keeps(split_lister *lister, uint32_t left)
{
    const optimal_model *model = lister->table->model;
    for (uint32_t form = 0; form < model->form_limit; form++)
        add_splits(lister, (optimal_split){lister->cut, lister->cut, TAIL_GRADIENT, lister->right, left, 0, form, 0,
                                           optimal_model_x(model, lister->cut, form), 0, 0});
}

/* x_cut leaves: every LEAVES(k, v') that the right part has, where start..k-1 is visited too. */
static void add_parts(split_lister *lister, uint32_t left)
{
    const optimal_table *table = lister->table;
    optimal_interval interval = lister->interval;
    uint32_t k = lister->cut;
    uint32_t count = optimal_ends_count(&table->model->ends, lister->cut, interval.last);
    for (uint32_t e = 1; e < count; e++) {
        const optimal_end *end = optimal_ends_get(&table->model->ends, lister->cut, e);
        if (end->kind != END_LEAVES)
            continue;
        if (lister->cut + end->ahead > interval.last)
            break; /* nothing of the right part would be done */
        if (lister->cut + end->ahead != k) {
            k = lister->cut + end->ahead;
            left = optimal_intervals_find(&table->intervals, interval.start, k - (size_t)1);
        }
        if (left != NO_INTERVAL || lister->all)
            add_splits(lister,
                       (optimal_split){lister->cut, k, end->tail, lister->right, left, e, end->form, 0, 0, 0, 0});
    }
}

size_t optimal_list_splits(const optimal_table *table, optimal_interval interval, const uint32_t *places,
                           size_t place_count, bool all, optimal_split *splits)
{
    const optimal_intervals *intervals = &table->intervals;
    split_lister lister = {table, interval, splits, 0, interval.last + 1, NO_INTERVAL, all};
    add_keeps(&lister, optimal_intervals_find(intervals, interval.start, interval.last));
    for (size_t p = 0; p < place_count; p++) {
        lister.cut = places[p];
        lister.right = optimal_intervals_find(intervals, places[p], interval.last);
        uint32_t left = optimal_intervals_find(intervals, interval.start, places[p] - (size_t)1);
        if (lister.right == NO_INTERVAL && !all)
            continue;
        add_keeps(&lister, left);
        add_parts(&lister, left);
    }
    return lister.count;
}

/* ---- choices ---- */

/* Where the choices of one state go. */
typedef struct choice_asker {
    const optimal_table *table;
    optimal_state state;
    const optimal_end *end;
    uint64_t base, tail; /* bytes of x_start where it is counted, and of the tail */
    bool all;            /* choices without a staircase too */
    visit_choice visit;
    void *context;
} choice_asker;

static bool ask(const choice_asker *asker, const optimal_choice *choice)
{
    if (!asker->all && (choice->offer.right.count == 0 || choice->offer.left.count == 0))
        return false;
    return asker->visit(asker->context, choice);
}

bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost)
{
    const remat_mode *mode = optimal_model_mode(model, state.start, q);
    const optimal_end *end = end_of(model, state);
    if (!mode || (end->kind != END_STAYS && (end->ahead != 0 || end->tail != TAIL_SAVED + q)))
        return false;
    *shift = mode->activation_bytes + (mode->holds_output ? 0 : model->x[state.start + 1]);
    *floor = optimal_state_base(model, state) + state_tail_bytes(model, state) + *shift + mode->forward_workspace_bytes;
    *cost = mode->forward_cost;
    if (end->kind == END_STAYS) {
        *floor = larger(*floor, mode->activation_bytes + model->y[state.start + 1] + model->y[state.start] +
                                    mode->backward_workspace_bytes);
        *cost += mode->backward_cost;
    }
    return true;
}

static bool ask_save(const choice_asker *asker, uint32_t q)
{
    const optimal_state *state = &asker->state;
    optimal_choice choice = {.kind = CHOICE_SAVE, .mode = q, .right = {state->start + 1, state->last, state->tail, 0}};
    staircase_offer *offer = &choice.offer;
    if (!optimal_save_figures(asker->table->model, *state, q, &offer->floor, &offer->right_shift, &offer->cost))
        return false;
    offer->right = optimal_table_stairs(asker->table, choice.right);
    offer->left = stairs_nothing();
    return ask(asker, &choice);
}

static bool ask_split(const choice_asker *asker, const optimal_split *split)
{
    const optimal_table *table = asker->table;
    optimal_state state = asker->state;
    optimal_state right = {split->cut, state.last, state.tail, split->right_end};
    staircase left_stairs = numbered_stairs(table, split->left, split->tail, state.end);
    if (left_stairs.count == 0 && !asker->all)
        return false;
    staircase right_stairs = split->cut > state.last
                                 ? empty_stairs(table, right)
                                 : numbered_stairs(table, split->right, state.tail, split->right_end);
    if (right_stairs.count == 0 && !asker->all)
        return false;
    optimal_choice choice = {.kind = CHOICE_SPLIT,
                             .cut = split->cut,
                             .form = split->form,
                             .inner = split->inner,
                             .keeps = split->right_end == 0,
                             .has_left = true,
                             .right = right,
                             .left = {state.start, split->k - 1, split->tail, state.end},
                             .offer = {.right = right_stairs,
                                       .left = left_stairs,
                                       .right_shift = split->shift + asker->base,
                                       .floor = split->peak + asker->base + asker->tail,
                                       .cost = split->cost}};
    return asker->visit(asker->context, &choice);
}

/* One pass that is x_start's last use, to x_cut in a form. */
static bool ask_last_use(const choice_asker *asker, uint32_t cut, uint32_t form)
{
    const optimal_model *model = asker->table->model;
    const optimal_end *end = asker->end;
    optimal_state state = asker->state;
    uint32_t k = end_place(state, end), right_end = 0;
    bool keeps = cut == k && end->tail == TAIL_GRADIENT;
    if (!keeps)
        right_end = optimal_ends_find(&model->ends, cut, (optimal_end){END_LEAVES, k - cut, end->tail, form, 0});
    if (right_end == NO_END)
        return false;
    optimal_choice choice = {.kind = CHOICE_LAST_USE,
                             .cut = cut,
                             .form = form,
                             .keeps = keeps,
                             .right = {cut, state.last, state.tail, right_end}};
    choice.offer.right = optimal_table_stairs(asker->table, choice.right);
    choice.offer.left = stairs_nothing();
    choice.offer.right_shift = keeps ? optimal_model_x(model, cut, form) : 0;
    bool enough = false;
    for (uint32_t inner = 0; inner < model->form_limit && !enough; inner++) {
        optimal_pass pass = optimal_model_pass(model, state.start, cut, form, inner);
        choice.inner = inner;
        choice.offer.floor = asker->tail + larger(pass.first + asker->base, pass.rest);
        choice.offer.cost = pass.cost;
        enough = ask(asker, &choice);
        if (cut == state.start + 1)
            break;
    }
    return enough;
}

/* To k itself, and to the records of k between start and k: from any other x the end does not exist. */
static bool ask_last_uses(const choice_asker *asker)
{
    const optimal_model *model = asker->table->model;
    uint32_t k = end_place(asker->state, asker->end), cut = asker->state.start + asker->end->next;
    if (k > asker->state.last) /* only the tail's step is to be done: straight there */
        cut = k;
    for (;;) {
        for (uint32_t form = 0; form < model->form_limit; form++)
            if (ask_last_use(asker, cut, form))
                return true;
        if (cut == k)
            return false;
        cut = (uint32_t)optimal_ends_next_record(model, cut, k);
    }
}

/* The choices that save the first layer. */
static bool ask_saves(const choice_asker *asker)
{
    const optimal_model *model = asker->table->model;
    if (asker->end->ahead > 0)
        return false;
    for (uint32_t q = 0; q < model->mode_limit; q++)
        if (ask_save(asker, q))
            return true;
    return false;
}

bool optimal_state_rival(const optimal_table *table, optimal_state state, staircase_offer *rival)
{
    const optimal_model *model = table->model;
    const optimal_end *end = end_of(model, state);
    uint32_t k = end_place(state, end);
    if (end->kind != END_LEAVES || optimal_tail_bytes(model, k, end->tail) < model->y[state.start])
        return false;
    uint64_t memory, rest;
    optimal_tail_step(model, k, end->tail, &memory, &rest);
    rest += model->least_before[k] - model->least_before[state.start];
    optimal_state stays = {state.start, state.last, state.tail, 0};
    /* the cost is negative: unsigned sums come out right */
    *rival = (staircase_offer){.right = optimal_table_stairs(table, stays),
                               .left = stairs_nothing(),
                               .right_shift = optimal_state_base(model, state),
                               .cost = 0 - rest};
    return rival->right.count > 0;
}

void optimal_each_choice(const optimal_table *table, optimal_state state, const optimal_split *splits,
                         size_t split_count, bool all, visit_choice visit, void *context)
{
    const optimal_model *model = table->model;
    choice_asker asker = {
        table, state,  end_of(model, state), optimal_state_base(model, state), state_tail_bytes(model, state), all,
        visit, context};
    if (ask_saves(&asker))
        return;
    if (asker.end->ahead > 0 && ask_last_uses(&asker))
        return;
    for (size_t s = 0; s < split_count; s++) {
        if (splits[s].cut > state.last && state.tail == TAIL_GRADIENT)
            continue; /* nothing to settle */
        if (ask_split(&asker, &splits[s]))
            return;
    }
}
