#include "plan/chain/strategy.h"

#include "graph/block_schedule.h"

remat_status strategy_full(const plan_request *request, plan_draft *draft)
{
    if (request->count == 0)
        return remat_fail(request->context, REMAT_INVALID, NULL, "full:0 has empty blocks; K must be at least 1");
    REMAT_TRY(plan_draft_marks(request, draft));
    for (size_t i = 0; i < request->chain->layer_count; i++)
        draft->marks[i] = i % request->count == 0 ? MARK_RECOMPUTE_NEW_BLOCK : MARK_RECOMPUTE;
    return REMAT_OK;
}
