#include "plan/chain/strategy.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "graph/block_schedule.h"

static bool larger(const void *user, uint32_t a, uint32_t b)
{
    const remat_layer *layers = user;
    return layers[a].modes[REMAT_KEEP].activation_bytes > layers[b].modes[REMAT_KEEP].activation_bytes;
}

/* The sort is stable, so layers of one size are taken by position. */
remat_status strategy_largest(const plan_request *request, plan_draft *draft)
{
    size_t n = request->chain->layer_count;
    REMAT_TRY(plan_draft_marks(request, draft));
    uint32_t *order;
    REMAT_TRY(remat_order(request->context, n, larger, request->chain->layers, &order));
    for (size_t i = 0; i < n && i < request->count; i++)
        draft->marks[order[i]] = MARK_RECOMPUTE;
    remat_release(request->context, order, n, sizeof *order);
    return REMAT_OK;
}
