/* Finds where layers repeat, so that equal intervals share one staircase. */
#include "plan/chain/optimal_model.h"

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

/* How much sharing a run brings: the starts that map onto others. */
static uint32_t run_worth(period_run run)
{
    uint32_t length = run.end - run.begin;
    return length > 2 * run.period + 1 ? length - run.period - 1 : 0;
}

/* The best run inside layers begin..end-1. */
static period_run best_run(const remat_layer *layers, uint32_t begin, uint32_t end)
{
    period_run best = {0, 0, 1};
    for (uint32_t period = 1; period <= MAX_PERIOD && 2 * period < end - begin; period++) {
        uint32_t from = begin;
        for (uint32_t k = begin; k + period <= end; k++) {
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

/* The best run, then those on either side of it; the recursion takes the shorter side. */
static void find_between(optimal_model *model, uint32_t begin, uint32_t end)
{
    for (;;) {
        period_run run = best_run(model->chain->layers, begin, end);
        if (run_worth(run) == 0)
            return;
        for (uint32_t i = run.begin; i < run.end; i++)
            model->run_of[i] = run;
        if (run.begin - begin < end - run.end) {
            find_between(model, begin, run.begin);
            begin = run.end;
        } else {
            find_between(model, run.end, end);
            end = run.begin;
        }
    }
}

void optimal_find_runs(optimal_model *model)
{
    find_between(model, 0, (uint32_t)model->n);
}
