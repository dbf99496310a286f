#include "plan/chain/optimal_choices.h"

#include "base/alloc.h"

/* ---- states ---- */

/* Rests are numbered by k, then by what is pending there, then by form. */
static uint32_t rest_number(const optimal_model *model, size_t start, optimal_rest rest)
{
    return 1 + ((rest.k - (uint32_t)start) * model->pending_limit + rest.pending) * model->form_count + rest.form;
}

optimal_rest optimal_rest_of(const optimal_model *model, optimal_state state)
{
    uint32_t number = state.rest - 1, group = number / model->form_count;
    return (optimal_rest){state.start + group / model->pending_limit, group % model->pending_limit,
                          number % model->form_count};
}

uint32_t optimal_rest_count(const optimal_model *model, size_t start, size_t last)
{
    size_t reach = model->base_reach[start], behind = last + 1;
    if (reach > behind) /* of k = last + 1 only GRADIENT */
        return rest_number(model, start, (optimal_rest){(uint32_t)behind, PENDING_GRADIENT + 1, 0});
    return reach > start ? rest_number(model, start, (optimal_rest){(uint32_t)reach, 0, 0}) : 1;
}

static bool rest_exists(const optimal_model *model, size_t start, optimal_rest rest)
{
    return optimal_pending_exists(model, rest.k, rest.pending) &&
           (rest.k > start || rest.pending != PENDING_GRADIENT); /* that would leave nothing */
}

bool optimal_state_exists(const optimal_model *model, optimal_state state)
{
    if (!optimal_pending_exists(model, (size_t)state.last + 1, state.pending))
        return false;
    if (state.rest == 0)
        return true;
    optimal_rest rest = optimal_rest_of(model, state);
    return rest_exists(model, state.start, rest) && (rest.k <= state.last || state.pending != PENDING_GRADIENT);
}

/* Bytes of x_start where the state counts it. */
static uint64_t base_bytes(const optimal_model *model, optimal_state state)
{
    return state.rest ? optimal_model_x(model, state.start, optimal_rest_of(model, state).form) : 0;
}

static uint64_t pending_bytes(const optimal_model *model, optimal_state state)
{
    return optimal_pending_bytes(model, (size_t)state.last + 1, state.pending);
}

/* ---- the table ---- */

remat_status optimal_table_number_states(remat_context *context, optimal_table *table)
{
    const optimal_intervals *intervals = &table->intervals;
    size_t count = intervals->count, total = 0;
    table->first_state = remat_alloc(context, count + 1, sizeof *table->first_state);
    table->rest_count = remat_alloc(context, count, sizeof *table->rest_count);
    if (!table->first_state || !table->rest_count)
        return REMAT_NO_MEMORY;
    for (size_t k = 0; k < count; k++) {
        optimal_interval interval = intervals->list[k];
        uint32_t number = optimal_intervals_find(intervals, interval.start, interval.last);
        table->rest_count[number] = optimal_rest_count(table->model, interval.start, interval.last);
    }
    for (size_t k = 0; k < count; k++) {
        table->first_state[k] = total;
        total += (size_t)table->rest_count[k] * table->model->pending_limit;
    }
    table->first_state[count] = total;
    table->stairs = remat_alloc_zeroed(context, total, sizeof *table->stairs);
    return table->stairs ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status optimal_table_fill_pending_steps(remat_context *context, optimal_table *table)
{
    const optimal_model *model = table->model;
    size_t kinds = model->pending_limit;
    table->pending_steps = remat_alloc(context, (model->n + 1) * kinds * 3, sizeof *table->pending_steps);
    if (!table->pending_steps)
        return REMAT_NO_MEMORY;
    for (size_t position = 1; position <= model->n; position++)
        for (uint32_t pending = 0; pending < kinds; pending++) {
            uint64_t *corner = table->pending_steps + (position * kinds + pending) * 3;
            corner[0] = corner[1] = MEMORY_END;
            if (optimal_pending_exists(model, position, pending))
                optimal_pending_step(model, position, pending, &corner[0], &corner[2]);
        }
    return REMAT_OK;
}

static staircase pending_stairs(const optimal_table *table, optimal_state state)
{
    const uint64_t *corner =
        table->pending_steps + ((size_t)state.start * table->model->pending_limit + state.pending) * 3;
    return (staircase){corner, corner + 2, corner[0] == MEMORY_END ? 0 : 1};
}

static staircase numbered_stairs(const optimal_table *table, uint32_t number, uint32_t pending, uint32_t rest)
{
    if (number == NO_INTERVAL || rest >= table->rest_count[number])
        return (staircase){0};
    return table->stairs[table->first_state[number] + (size_t)pending * table->rest_count[number] + rest];
}

size_t optimal_table_state_number(const optimal_table *table, optimal_state state)
{
    uint32_t number = optimal_intervals_find(&table->intervals, state.start, state.last);
    return table->first_state[number] + (size_t)state.pending * table->rest_count[number] + state.rest;
}

staircase optimal_table_stairs(const optimal_table *table, optimal_state state)
{
    if (state.start > state.last)
        return pending_stairs(table, state);
    return numbered_stairs(table, optimal_intervals_find(&table->intervals, state.start, state.last), state.pending,
                           state.rest);
}

/* ---- splits ---- */

size_t optimal_most_splits(const optimal_table *table)
{
    const optimal_model *model = table->model;
    size_t most = model->n + 1;
    for (size_t i = 1; i < model->n; i++)
        most += (model->base_reach[i] - i) * model->pending_limit;
    return most * model->form_count;
}

/* Where the ways to split one interval go. */
typedef struct split_lister {
    const optimal_table *table;
    optimal_interval interval;
    optimal_split *splits;
    size_t count;
    uint32_t cut, right;
    optimal_pass passes[MOST_FORMS]; /* to x_cut */
} split_lister;

static void add_split(split_lister *lister, optimal_rest rest, uint32_t left, uint32_t right_rest)
{
    const optimal_pass *pass = &lister->passes[rest.form];
    uint64_t shift = right_rest ? 0 : optimal_model_x(lister->table->model, lister->cut, rest.form);
    lister->splits[lister->count++] = (optimal_split){lister->cut,   rest.k, rest.pending,
                                                      lister->right, left,   right_rest,
                                                      rest.form,     shift,  remat_max(pass->first, pass->rest),
                                                      pass->cost};
}

/* x_cut is kept: the left part ends before it with a gradient. */
static void add_keeps(split_lister *lister)
{
    uint32_t left = optimal_intervals_find(&lister->table->intervals, lister->interval.start, lister->cut - (size_t)1);
    for (uint32_t form = 0; form < lister->table->model->form_count; form++)
        add_split(lister, (optimal_rest){lister->cut, PENDING_GRADIENT, form}, left, 0);
}

/* x_cut is dropped: every rest (k, P') of the right part whose left part is visited too. */
static void add_drops(split_lister *lister)
{
    const optimal_model *model = lister->table->model;
    optimal_interval interval = lister->interval;
    for (uint32_t k = lister->cut; k < model->base_reach[lister->cut] && k <= interval.last; k++) {
        uint32_t left = optimal_intervals_find(&lister->table->intervals, interval.start, k - (size_t)1);
        optimal_rest rest = {k, 0, 0};
        for (; rest.pending < model->pending_limit && left != NO_INTERVAL; rest.pending++)
            for (rest.form = 0; rest.form < model->form_count; rest.form++)
                if (rest_exists(model, lister->cut, rest))
                    add_split(lister, rest, left, rest_number(model, lister->cut, rest));
    }
}

size_t optimal_list_splits(const optimal_table *table, optimal_interval interval, const uint32_t *places,
                           size_t place_count, optimal_split *splits)
{
    const optimal_model *model = table->model;
    split_lister lister = {.table = table, .interval = interval, .splits = splits};
    size_t layer = interval.start;
    for (size_t p = 0; p <= place_count; p++) {
        lister.cut = p < place_count ? places[p] : interval.last + 1;
        for (; layer < lister.cut; layer++)
            for (uint32_t form = 0; form < model->form_count; form++)
                optimal_pass_extend(model, form, interval.start, layer, &lister.passes[form]);
        lister.right =
            p < place_count ? optimal_intervals_find(&table->intervals, lister.cut, interval.last) : NO_INTERVAL;
        if (p < place_count && lister.right == NO_INTERVAL)
            continue;
        add_keeps(&lister);
        if (p < place_count)
            add_drops(&lister);
    }
    return lister.count;
}

/* ---- choices ---- */

/* Where the choices of one state go. */
typedef struct choice_asker {
    const optimal_table *table;
    optimal_state state;
    uint64_t base, pending; /* bytes of x_start where it is counted, and of what is pending */
    visit_choice visit;
    void *context;
} choice_asker;

static bool ask(const choice_asker *asker, const optimal_choice *choice)
{
    return choice->offer.right.count > 0 && choice->offer.left.count > 0 && asker->visit(asker->context, choice);
}

bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost)
{
    const remat_mode *mode = optimal_model_mode(model, state.start, q);
    optimal_rest waiting = {state.start, PENDING_SAVED + q, state.rest ? optimal_rest_of(model, state).form : 0};
    if (!mode || (state.rest && state.rest != rest_number(model, state.start, waiting)))
        return false;
    uint64_t out = remat_chain_x_bytes(model->chain, state.start + (size_t)1);
    *shift = mode->activation_bytes + (mode->holds_output ? 0 : out);
    *floor = base_bytes(model, state) + pending_bytes(model, state) + *shift + mode->forward_workspace_bytes;
    *cost = mode->forward_cost;
    if (state.rest == 0) {
        uint64_t gradients = out + remat_chain_y_bytes(model->chain, state.start);
        *floor = remat_max(*floor, mode->activation_bytes + gradients + mode->backward_workspace_bytes);
        *cost += mode->backward_cost;
    }
    return true;
}

static bool ask_save(const choice_asker *asker, uint32_t q)
{
    const optimal_state *state = &asker->state;
    optimal_choice choice = {
        .kind = CHOICE_SAVE, .mode = q, .right = {state->start + 1, state->last, state->pending, 0}};
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
    optimal_state state = asker->state, right = {split->cut, state.last, state.pending, split->right_rest};
    staircase left_stairs = numbered_stairs(table, split->left, split->pending, state.rest);
    if (left_stairs.count == 0)
        return false;
    staircase right_stairs = split->cut > state.last
                                 ? pending_stairs(table, right)
                                 : numbered_stairs(table, split->right, state.pending, split->right_rest);
    if (right_stairs.count == 0)
        return false;
    optimal_choice choice = {.kind = CHOICE_SPLIT,
                             .cut = split->cut,
                             .form = split->form,
                             .keeps = split->right_rest == 0,
                             .right = right,
                             .left = {state.start, split->k - 1, split->pending, state.rest},
                             .offer = {.right = right_stairs,
                                       .left = left_stairs,
                                       .right_shift = split->shift + asker->base,
                                       .floor = split->peak + asker->base + asker->pending,
                                       .cost = split->cost}};
    return asker->visit(asker->context, &choice);
}

/* One pass that is x_start's last use, to x_cut in a form. */
static bool ask_last_use(const choice_asker *asker, optimal_rest rest, uint32_t cut, uint32_t form)
{
    const optimal_model *model = asker->table->model;
    optimal_state state = asker->state;
    bool keeps = cut == rest.k && rest.pending == PENDING_GRADIENT;
    optimal_pass pass = {0};
    for (uint32_t layer = state.start; layer < cut; layer++)
        optimal_pass_extend(model, form, state.start, layer, &pass);
    uint32_t right_rest = keeps ? 0 : rest_number(model, cut, (optimal_rest){rest.k, rest.pending, form});
    optimal_choice choice = {.kind = CHOICE_LAST_USE,
                             .cut = cut,
                             .form = form,
                             .keeps = keeps,
                             .right = {cut, state.last, state.pending, right_rest},
                             .offer = {.left = stairs_nothing(),
                                       .right_shift = keeps ? optimal_model_x(model, cut, form) : 0,
                                       .floor = asker->pending + remat_max(pass.first + asker->base, pass.rest),
                                       .cost = pass.cost}};
    choice.offer.right = optimal_table_stairs(asker->table, choice.right);
    return ask(asker, &choice);
}

/* To k, and to the bases for k behind x_start; where k is behind the interval, straight there. */
static bool ask_last_uses(const choice_asker *asker)
{
    const optimal_model *model = asker->table->model;
    uint32_t start = asker->state.start;
    optimal_rest rest = asker->state.rest ? optimal_rest_of(model, asker->state) : (optimal_rest){start, 0, 0};
    for (uint32_t cut = rest.k; cut > start; cut = rest.k > asker->state.last ? start : model->base_parent[cut])
        for (uint32_t form = 0; form < model->form_count; form++)
            if (ask_last_use(asker, rest, cut, form))
                return true;
    return false;
}

bool optimal_state_rival(const optimal_table *table, optimal_state state, staircase_offer *rival)
{
    const optimal_model *model = table->model;
    if (state.rest == 0)
        return false;
    optimal_rest rest = optimal_rest_of(model, state);
    uint64_t memory, saved;
    if (optimal_pending_bytes(model, rest.k, rest.pending) < remat_chain_y_bytes(model->chain, state.start))
        return false;
    optimal_pending_step(model, rest.k, rest.pending, &memory, &saved);
    for (size_t layer = state.start; layer < rest.k; layer++)
        saved += model->least_cost[layer];
    *rival = (staircase_offer){
        .right = numbered_stairs(table, optimal_intervals_find(&table->intervals, state.start, state.last),
                                 state.pending, 0),
        .left = stairs_nothing(),
        .right_shift = base_bytes(model, state),
        .cost = 0 - saved}; /* unsigned sums come out right */
    return rival->right.count > 0;
}

void optimal_each_choice(const optimal_table *table, optimal_state state, const optimal_split *splits,
                         size_t split_count, visit_choice visit, void *context)
{
    const optimal_model *model = table->model;
    choice_asker asker = {table, state, base_bytes(model, state), pending_bytes(model, state), visit, context};
    for (uint32_t q = 0; q < model->mode_limit; q++)
        if (ask_save(&asker, q))
            return;
    if (ask_last_uses(&asker))
        return;
    for (size_t s = 0; s < split_count; s++)
        if ((splits[s].cut <= state.last || state.pending != PENDING_GRADIENT) && ask_split(&asker, &splits[s]))
            return;
}
