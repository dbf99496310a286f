#include "plan/chain/optimal_model.h"

#include <remat/schedule.h>

#include "base/alloc.h"
#include "plan/chain/optimal_ends.h"

static bool may_use(const optimal_model *model, const remat_layer *layer, uint32_t mode)
{
    return mode < layer->mode_count && (mode == REMAT_KEEP || layer->modes[mode].lossless || model->allow_lossy);
}

const remat_mode *optimal_model_mode(const optimal_model *model, size_t layer, uint32_t mode)
{
    const remat_layer *of = &model->chain->layers[layer];
    return mode < model->mode_limit && may_use(model, of, mode) ? &of->modes[mode] : NULL;
}

static bool add_checked(uint64_t *sum, uint64_t value)
{
    if (value >= FIGURE_LIMIT || *sum + value >= FIGURE_LIMIT)
        return false;
    *sum += value;
    return true;
}

/* One check of the sums of all figures makes every later sum safe. */
bool optimal_figures_fit(const remat_profile *chain)
{
    uint64_t bytes = 0, cost = 0;
    bool fit = add_checked(&bytes, chain->input_bytes) && add_checked(&bytes, chain->input_gradient_bytes) &&
               add_checked(&bytes, chain->loss_workspace_bytes);
    for (size_t i = 0; fit && i < chain->layer_count; i++) {
        const remat_layer *layer = &chain->layers[i];
        fit = add_checked(&bytes, layer->output_bytes) && add_checked(&bytes, layer->output_bytes);
        for (uint32_t q = 0; fit && q < layer->mode_count; q++) {
            const remat_mode *mode = &layer->modes[q];
            fit = add_checked(&bytes, mode->activation_bytes) && add_checked(&bytes, mode->forward_workspace_bytes) &&
                  add_checked(&bytes, mode->backward_workspace_bytes) && add_checked(&cost, mode->forward_cost) &&
                  add_checked(&cost, mode->forward_cost) && add_checked(&cost, mode->backward_cost);
        }
    }
    return fit;
}

static void fill_sizes(optimal_model *model)
{
    const remat_profile *chain = model->chain;
    model->x[0] = chain->input_bytes;
    model->y[0] = chain->input_gradient_bytes;
    for (size_t i = 0; i < model->n; i++)
        model->x[i + 1] = model->y[i + 1] = chain->layers[i].output_bytes;
}

/* The work grows with the third power of the modes: of very many only the first are used. */
static void fill_mode_limit(optimal_model *model)
{
    uint64_t n = model->n, cuts = n <= 100 ? n * n * n / 6 + 1 : 100 * n, affordable = 2;
    while (affordable < 32 && cuts * (affordable + 2) * (affordable + 2) * (affordable + 2) <= 30000000)
        affordable++;
    for (size_t i = 0; i < n; i++)
        for (uint32_t q = model->mode_limit; q < model->chain->layers[i].mode_count; q++)
            if (may_use(model, &model->chain->layers[i], q))
                model->mode_limit = q + 1;
    model->modes_left_out = model->mode_limit > affordable;
    if (model->modes_left_out)
        model->mode_limit = (uint32_t)affordable;
}

static unsigned floor_log2(size_t value)
{
    unsigned log = 0;
    while (value >>= 1)
        log++;
    return log;
}

static void fill_least_costs(optimal_model *model)
{
    model->least_before[0] = 0;
    for (size_t i = 0; i < model->n; i++) {
        uint64_t least = UINT64_MAX;
        for (uint32_t q = 0; q < model->mode_limit; q++) {
            const remat_mode *mode = optimal_model_mode(model, i, q);
            if (mode && mode->forward_cost + mode->backward_cost < least)
                least = mode->forward_cost + mode->backward_cost;
        }
        model->least_before[i + 1] = model->least_before[i] + least;
    }
}

size_t optimal_model_canonical_start(const optimal_model *model, size_t start, size_t last)
{
    if (start >= model->n || model->run_of[start] < 0)
        return start;
    const period_run *run = &model->runs[model->run_of[start]];
    /* x_start is made by the layer before, and a tail is the layer after: both must repeat too */
    if (start <= run->begin || last + 1 >= run->end)
        return start;
    return run->begin + 1 + (start - run->begin - 1) % run->period;
}

static void fill_keep_all(optimal_model *model)
{
    uint64_t held = model->x[0], peak = held;
    for (size_t i = 0; i < model->n; i++) {
        const remat_mode *keep = &model->chain->layers[i].modes[0];
        held += keep->activation_bytes + (keep->holds_output ? 0 : model->x[i + 1]);
        if (held + keep->forward_workspace_bytes > peak)
            peak = held + keep->forward_workspace_bytes;
        model->base_cost += keep->forward_cost + keep->backward_cost;
    }
    if (held + model->y[model->n] + model->chain->loss_workspace_bytes > peak)
        peak = held + model->y[model->n] + model->chain->loss_workspace_bytes;
    for (size_t i = model->n; i-- > 0;) {
        const remat_mode *keep = &model->chain->layers[i].modes[0];
        held -= keep->holds_output ? 0 : model->x[i + 1];
        uint64_t during = held + model->y[i + 1] + model->y[i] + keep->backward_workspace_bytes;
        if (during > peak)
            peak = during;
        held -= keep->activation_bytes;
    }
    model->keep_all_peak = peak;
}

/* Order of cutting places: small x first, then every 2nd, 4th, 8th repetition, then scattered. */
static bool cuts_better(const optimal_model *model, size_t a, size_t b)
{
    if (model->x[a] != model->x[b])
        return model->x[a] < model->x[b];
    size_t ra = a, rb = b;
    if (a < model->n && model->run_of[a] >= 0 && b < model->n && model->run_of[b] == model->run_of[a]) {
        const period_run *run = &model->runs[model->run_of[a]];
        ra = (a - run->begin) / run->period + 1;
        rb = (b - run->begin) / run->period + 1;
    }
    size_t low_a = ra & (~ra + 1), low_b = rb & (~rb + 1);
    return low_a != low_b ? low_a > low_b : a < b;
}

static void fill_ranks(optimal_model *model)
{
    for (size_t j = 0; j <= model->n; j++) {
        size_t radius = 1;
        while (radius <= model->n && (j < radius || cuts_better(model, j, j - radius)) &&
               (j + radius > model->n || cuts_better(model, j, j + radius)))
            radius++;
        model->rank[j] = floor_log2(radius);
    }
}

static remat_status allocate_model(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    model->x = remat_alloc(context, n + 1, sizeof *model->x);
    model->y = remat_alloc(context, n + 1, sizeof *model->y);
    model->least_before = remat_alloc(context, n + 1, sizeof *model->least_before);
    model->rank = remat_alloc(context, n + 1, sizeof *model->rank);
    model->run_of = remat_alloc(context, n + 1, sizeof *model->run_of);
    bool all = model->x && model->y && model->least_before && model->rank && model->run_of;
    return all ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status optimal_model_build(remat_context *context, const remat_profile *chain, bool allow_lossy, bool tight,
                                 optimal_model *model)
{
    *model = (optimal_model){.chain = chain, .n = chain->layer_count, .allow_lossy = allow_lossy, .mode_limit = 1};
    remat_status status = REMAT_OK;
    if (!optimal_figures_fit(chain))
        status =
            remat_fail(context, REMAT_INVALID, NULL,
                       "figures above 2^61 are too large for the optimal planner: the bytes of all layers together, "
                       "and their costs, must stay below");
    if (status == REMAT_OK)
        status = allocate_model(context, model);
    if (status == REMAT_OK)
        status = optimal_find_runs(context, model);
    if (status == REMAT_OK) {
        fill_sizes(model);
        fill_mode_limit(model);
        fill_least_costs(model);
        status = optimal_find_forms(context, model);
    }
    if (status == REMAT_OK)
        status = optimal_ends_choose(context, model, tight, &model->ends);
    if (status != REMAT_OK) {
        optimal_model_free(context, model);
        return status;
    }
    fill_keep_all(model);
    fill_ranks(model);
    return REMAT_OK;
}

void optimal_model_free(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    remat_release(context, model->x, n + 1, sizeof *model->x);
    remat_release(context, model->y, n + 1, sizeof *model->y);
    remat_release(context, model->least_before, n + 1, sizeof *model->least_before);
    optimal_free_forms(context, model);
    optimal_ends_free(context, &model->ends);
    remat_release(context, model->rank, n + 1, sizeof *model->rank);
    remat_release(context, model->run_of, n + 1, sizeof *model->run_of);
    remat_release(context, model->runs, model->run_capacity, sizeof *model->runs);
    *model = (optimal_model){0};
}
