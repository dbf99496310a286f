#include "plan/chain/strategy.h"

#include "base/alloc.h"
#include "base/min_max.h"
#include "base/sort.h"
#include "graph/block_peaks.h"
#include "graph/block_schedule.h"

/* Layers in the order in which the greedy drops them: most bytes per flop first, compared exactly. */
static bool frees_more(const void *user, uint32_t a, uint32_t b)
{
    const remat_layer *layers = user;
    unsigned __int128 left = layers[a].modes[REMAT_KEEP].activation_bytes;
    unsigned __int128 right = layers[b].modes[REMAT_KEEP].activation_bytes;
    return left * (layers[b].recompute_flops + 1) > right * (layers[a].recompute_flops + 1);
}

/* The shortest prefix of `order` whose schedule's peak fits. Peaks are not monotone along the order, so all count. */
static remat_status shortest_by_peak(const plan_request *request, const uint32_t *order, plan_draft *draft,
                                     size_t *length)
{
    block_peaks *peaks;
    REMAT_TRY(block_peaks_create(request->context, request->chain, &peaks));
    size_t n = request->chain->layer_count;
    uint64_t least = UINT64_MAX;
    bool found = false;
    for (size_t i = 0; i <= n; i++) {
        if (i > 0)
            block_peaks_recompute(peaks, order[i - 1]);
        uint64_t peak = block_peaks_peak(peaks);
        least = remat_min(least, peak);
        if (!found && peak <= request->options->budget_bytes) {
            found = true;
            *length = i;
        }
    }
    block_peaks_destroy(peaks);
    draft->infeasible = !found;
    draft->knows_min_budget = true;
    draft->min_budget_bytes = least;
    return REMAT_OK;
}

/* The shortest prefix that leaves no more than the budget to be kept. Dropping everything keeps nothing, so there
 * always is one. */
static void shortest_by_kept(const plan_request *request, const uint32_t *order, plan_draft *draft, size_t *length)
{
    uint64_t kept = 0;
    for (size_t i = 0; i < request->chain->layer_count; i++)
        kept += request->chain->layers[i].modes[REMAT_KEEP].activation_bytes;
    for (*length = 0; kept > request->options->budget_bytes; ++*length)
        kept -= request->chain->layers[order[*length]].modes[REMAT_KEEP].activation_bytes;
    draft->knows_min_budget = true;
    draft->min_budget_bytes = 0;
}

remat_status strategy_budget(const plan_request *request, plan_draft *draft)
{
    if (request->options->budget_bytes == REMAT_NO_BUDGET)
        return remat_fail(request->context, REMAT_INVALID, NULL, "the strategy 'budget' needs a budget");
    size_t n = request->chain->layer_count, length = 0;
    REMAT_TRY(plan_draft_marks(request, draft));
    uint32_t *order;
    REMAT_TRY(remat_order(request->context, n, frees_more, request->chain->layers, &order));
    remat_status status = REMAT_OK;
    if (request->options->budget_counts == REMAT_COUNT_KEPT)
        shortest_by_kept(request, order, draft, &length);
    else
        status = shortest_by_peak(request, order, draft, &length);
    for (size_t i = 0; status == REMAT_OK && i < length; i++)
        draft->marks[order[i]] = MARK_RECOMPUTE;
    remat_release(request->context, order, n, sizeof *order);
    return status;
}
