/* Finds where layers repeat, so that equal intervals share one staircase. */
#include "plan/chain/optimal_model.h"

#include "base/alloc.h"

enum { MAX_PERIOD = 256 };

static bool same_mode(const remat_mode *a, const remat_mode *b)
{
    return a->activation_bytes == b->activation_bytes && a->forward_cost == b->forward_cost &&
           a->backward_cost == b->backward_cost && a->forward_workspace_bytes == b->forward_workspace_bytes &&
           a->backward_workspace_bytes == b->backward_workspace_bytes && a->holds_output == b->holds_output &&
           a->lossless == b->lossless;
}

static bool same_layer(const remat_layer *a, const remat_layer *b)
{
    if (a->output_bytes != b->output_bytes || a->mode_count != b->mode_count)
        return false;
    for (uint32_t q = 0; q < a->mode_count; q++)
        if (!same_mode(&a->modes[q], &b->modes[q]))
            return false;
    return true;
}

/* How much sharing a run brings: the starts that map onto others, long periods needing more of them. */
static size_t run_worth(period_run run)
{
    size_t length = run.end - run.begin;
    return length > 2 * run.period + 1 ? length - run.period - 1 : 0;
}

/* The best run inside layers begin..end-1 that no run covers yet. */
static period_run best_run(const remat_layer *layers, size_t begin, size_t end)
{
    period_run best = {0, 0, 1};
    for (size_t period = 1; period <= MAX_PERIOD && 2 * period < end - begin; period++) {
        size_t from = begin;
        for (size_t k = begin; k + period <= end; k++) {
            if (k + period < end && same_layer(&layers[k], &layers[k + period]))
                continue;
            period_run run = {from, k + period, period};
            if (run_worth(run) > run_worth(best))
                best = run;
            from = k + 1;
        }
    }
    return best;
}

typedef struct run_list {
    period_run *runs;
    size_t count, capacity;
} run_list;

static remat_status append_run(remat_context *context, run_list *list, period_run run)
{
    void *runs = list->runs;
    REMAT_TRY(remat_grow(context, &runs, &list->capacity, list->count + 1, sizeof *list->runs));
    list->runs = runs;
    list->runs[list->count++] = run;
    return REMAT_OK;
}

remat_status optimal_find_runs(remat_context *context, optimal_model *model)
{
    run_list found = {0}, open = {0};
    const remat_layer *layers = model->chain->layers;
    for (size_t i = 0; i <= model->n; i++)
        model->run_of[i] = -1;
    remat_status status = append_run(context, &open, (period_run){0, model->n, 1});
    while (status == REMAT_OK && open.count > 0) {
        period_run range = open.runs[--open.count];
        period_run run = best_run(layers, range.begin, range.end);
        if (run_worth(run) == 0)
            continue;
        for (size_t i = run.begin; i < run.end; i++)
            model->run_of[i] = (int32_t)found.count;
        status = append_run(context, &found, run);
        if (status == REMAT_OK)
            status = append_run(context, &open, (period_run){range.begin, run.begin, 1});
        if (status == REMAT_OK)
            status = append_run(context, &open, (period_run){run.end, range.end, 1});
    }
    remat_release(context, open.runs, open.capacity, sizeof *open.runs);
    if (status != REMAT_OK) {
        remat_release(context, found.runs, found.capacity, sizeof *found.runs);
        return status;
    }
    model->runs = found.runs;
    model->run_count = found.count;
    model->run_capacity = found.capacity;
    return REMAT_OK;
}
