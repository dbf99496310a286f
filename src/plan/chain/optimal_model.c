#include "plan/chain/optimal_model.h"

#include <remat/schedule.h>

#include "base/alloc.h"

bool optimal_figures_fit(const remat_profile *chain)
{
    return chain->most_bytes < FIGURE_LIMIT && chain->most_cost < FIGURE_LIMIT / 2;
}

/* ---- modes ---- */

const remat_mode *optimal_model_mode(const optimal_model *model, size_t layer, uint32_t mode)
{
    const remat_layer *of = &model->chain->layers[layer];
    bool may_use = mode == REMAT_KEEP || (mode < of->mode_count && (of->modes[mode].lossless || model->allow_lossy));
    return mode < model->mode_limit && may_use ? &of->modes[mode] : NULL;
}

/* The work grows with the third power of the modes: of very many only the first are used. */
static void fill_mode_limit(optimal_model *model)
{
    uint64_t n = model->n, cuts = n <= 100 ? n * n * n / 6 + 1 : 100 * n, affordable = 2;
    while (affordable < 32 && cuts * (affordable + 2) * (affordable + 2) * (affordable + 2) <= 30000000)
        affordable++;
    uint32_t limit = 1;
    model->mode_limit = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        for (uint32_t q = limit; q < model->chain->layers[i].mode_count; q++)
            if (optimal_model_mode(model, i, q))
                limit = q + 1;
    model->modes_left_out = limit > affordable;
    model->mode_limit = (uint32_t)remat_min(limit, affordable);
    model->pending_limit = PENDING_SAVED + model->mode_limit;
}

/* ---- forms ---- */

static optimal_form plain_form(const remat_layer *layer)
{
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    return (optimal_form){layer->output_bytes, layer->output_bytes + keep->forward_workspace_bytes, keep->forward_cost,
                          0, false};
}

static optimal_form smallest_form(const optimal_model *model, size_t i)
{
    const remat_layer *layer = &model->chain->layers[i];
    optimal_form best = plain_form(layer);
    for (uint32_t q = 0; q < model->mode_limit; q++) {
        const remat_mode *mode = optimal_model_mode(model, i, q);
        uint64_t bytes = mode ? mode->activation_bytes : 0;
        if (mode && mode->holds_output &&
            (bytes < best.bytes || (bytes == best.bytes && mode->forward_cost < best.cost)))
            best = (optimal_form){bytes, bytes + mode->forward_workspace_bytes, mode->forward_cost, q + 1, true};
    }
    return best;
}

static void fill_forms(optimal_model *model)
{
    size_t n = model->n;
    model->form_count = 1;
    for (size_t i = 0; i < n; i++) {
        model->forms[i] = plain_form(&model->chain->layers[i]);
        model->forms[n + i] = smallest_form(model, i);
        if (model->forms[n + i].save)
            model->form_count = MOST_FORMS;
        model->least_cost[i] = UINT64_MAX;
        for (uint32_t q = 0; q < model->mode_limit; q++) {
            const remat_mode *mode = optimal_model_mode(model, i, q);
            if (mode)
                model->least_cost[i] = remat_min(model->least_cost[i], mode->forward_cost + mode->backward_cost);
        }
    }
}

/* ---- what is pending ---- */

bool optimal_pending_exists(const optimal_model *model, size_t position, uint32_t pending)
{
    if (pending == PENDING_GRADIENT)
        return true;
    return position == model->n ? pending == PENDING_LOSS
                                : optimal_model_mode(model, position, pending - PENDING_SAVED) != NULL;
}

uint64_t optimal_pending_bytes(const optimal_model *model, size_t position, uint32_t pending)
{
    if (pending == PENDING_GRADIENT)
        return remat_chain_y_bytes(model->chain, position);
    if (position == model->n)
        return 0;
    return optimal_model_mode(model, position, pending - PENDING_SAVED)->activation_bytes +
           remat_chain_y_bytes(model->chain, position + 1);
}

void optimal_pending_step(const optimal_model *model, size_t position, uint32_t pending, uint64_t *memory,
                          uint64_t *cost)
{
    *memory = remat_chain_y_bytes(model->chain, position);
    *cost = 0;
    if (pending == PENDING_GRADIENT)
        return;
    if (position == model->n) {
        *memory += model->chain->loss_workspace_bytes;
        return;
    }
    const remat_mode *mode = optimal_model_mode(model, position, pending - PENDING_SAVED);
    *memory += optimal_pending_bytes(model, position, pending) + mode->backward_workspace_bytes;
    *cost = mode->backward_cost;
}

/* ---- temporary bases ---- */

static uint64_t smallest_x(const optimal_model *model, size_t i)
{
    return optimal_model_x(model, i, model->form_count - 1);
}

/* x_i can serve the positions up to the next x that is no larger, but at most `limit` of them. The input x_0 never goes.
 * Returns how many positions all of them serve. */
static size_t fill_reach(optimal_model *model, size_t limit)
{
    size_t n = model->n, sum = 0;
    model->base_reach[0] = model->base_reach[n] = 0;
    for (size_t i = 1; i < n; i++) {
        size_t k = i + 1;
        while (k <= n && k - i <= limit && smallest_x(model, k) > smallest_x(model, i))
            k++;
        model->base_reach[i] = (uint32_t)k;
        sum += k - i;
    }
    return sum;
}

/* Temporary bases pay at tight budgets, up to 1.3 times the smallest, and the less the longer the chain: 5 to 20 % for up
 * to 100 layers, which use as many as the time allows. Longer chains gain more from more cuts. */
static void fill_bases(optimal_model *model)
{
    enum { MOST_LAYERS = 100, MOST_OFFERS = 3000000 /* about a second */ };
    size_t n = model->n, limit = n <= MOST_LAYERS ? n : 0;
    model->base_parent[0] = 0;
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t j = k - 1;
        while (j > 0 && smallest_x(model, j) >= smallest_x(model, k))
            j = model->base_parent[j];
        model->base_parent[k] = j;
    }
    for (; n > 0; limit /= 2) {
        uint64_t rests = 10 + fill_reach(model, limit) * model->pending_limit * model->form_count * 10 / n; /* tenths */
        uint64_t offers = n * n * n / 6 * model->pending_limit / 2 * rests * rests / 100 * model->form_count;
        if (offers <= MOST_OFFERS || limit == 0)
            break;
    }
}

/* ---- places to cut ---- */

/* The bytes that layer i needs beside its input, to be saved and to run backward. */
static uint64_t demand(const optimal_model *model, size_t i)
{
    if (i == model->n)
        return 0;
    const remat_mode *keep = &model->chain->layers[i].modes[REMAT_KEEP];
    uint64_t gradients = remat_chain_y_bytes(model->chain, i) + remat_chain_y_bytes(model->chain, i + 1);
    return keep->activation_bytes +
           remat_max(keep->forward_workspace_bytes, gradients + keep->backward_workspace_bytes);
}

static size_t lowest_bit(size_t value)
{
    return value & (~value + 1);
}

/* Small x first; then every 8th, 4th, 2nd repetition of a run; then inputs of layers that need much memory, because
 * backward i holds x_i anyway; then scattered. */
static bool cuts_better(const optimal_model *model, size_t a, size_t b)
{
    uint64_t x_a = remat_chain_x_bytes(model->chain, a), x_b = remat_chain_x_bytes(model->chain, b);
    if (x_a != x_b)
        return x_a < x_b;
    period_run run = model->run_of[a];
    if (run.period && b >= run.begin && b < run.end) {
        size_t low_a = lowest_bit((a - run.begin) / run.period + 1),
               low_b = lowest_bit((b - run.begin) / run.period + 1);
        if (low_a != low_b)
            return low_a > low_b;
    }
    if (demand(model, a) != demand(model, b))
        return demand(model, a) > demand(model, b);
    return lowest_bit(a) != lowest_bit(b) ? lowest_bit(a) > lowest_bit(b) : a < b;
}

static void fill_ranks(optimal_model *model)
{
    for (size_t j = 0; j <= model->n; j++) {
        size_t radius = 1;
        while (radius <= model->n && (j < radius || cuts_better(model, j, j - radius)) &&
               (j + radius > model->n || cuts_better(model, j, j + radius)))
            radius++;
        model->rank[j] = remat_bits(radius) - 1;
    }
}

size_t optimal_model_canonical_start(const optimal_model *model, size_t start, size_t last)
{
    period_run run = model->run_of[start];
    /* x_start is made by the layer before, and what is pending belongs to the layer behind: both must repeat too */
    if (run.period == 0 || start <= run.begin || last + 1 >= run.end)
        return start;
    return run.begin + 1 + (start - run.begin - 1) % run.period;
}

/* ---- the whole ---- */

static bool allocate_model(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    model->forms = remat_alloc(context, MOST_FORMS * n, sizeof *model->forms);
    model->least_cost = remat_alloc(context, n, sizeof *model->least_cost);
    model->base_parent = remat_alloc(context, 3 * (n + 1), sizeof *model->base_parent);
    model->base_reach = model->base_parent ? model->base_parent + n + 1 : NULL;
    model->rank = model->base_parent ? model->base_reach + n + 1 : NULL;
    model->run_of = remat_alloc_zeroed(context, n + 1, sizeof *model->run_of);
    return model->forms && model->least_cost && model->base_parent && model->run_of;
}

remat_status optimal_model_build(remat_context *context, const remat_profile *chain, bool allow_lossy,
                                 optimal_model *model)
{
    *model = (optimal_model){0};
    if (!optimal_figures_fit(chain))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "figures above 2^61 are too large for the optimal planner: the bytes of all layers together, "
                          "and their costs, must stay below");
    *model = (optimal_model){.chain = chain, .n = chain->layer_count, .allow_lossy = allow_lossy};
    if (!allocate_model(context, model)) {
        optimal_model_free(context, model);
        return REMAT_NO_MEMORY;
    }
    fill_mode_limit(model);
    fill_forms(model);
    fill_bases(model);
    optimal_find_runs(model);
    fill_ranks(model);
    return REMAT_OK;
}

void optimal_model_free(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    remat_release(context, model->forms, MOST_FORMS * n, sizeof *model->forms);
    remat_release(context, model->least_cost, n, sizeof *model->least_cost);
    remat_release(context, model->base_parent, 3 * (n + 1), sizeof *model->base_parent);
    remat_release(context, model->run_of, n + 1, sizeof *model->run_of);
    *model = (optimal_model){0};
}
