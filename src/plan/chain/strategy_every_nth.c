#include "plan/chain/strategy.h"

#include "graph/block_schedule.h"

/* Counts positions in the list, not indexes. */
remat_status strategy_every_nth(const plan_request *request, plan_draft *draft)
{
    if (request->count == 0)
        return remat_fail(request->context, REMAT_INVALID, NULL, "every-nth:0 means nothing; N must be at least 1");
    REMAT_TRY(plan_draft_marks(request, draft));
    for (size_t i = 0; i < request->chain->layer_count; i++)
        draft->marks[i] = i % request->count == 0 ? MARK_RECOMPUTE : MARK_KEEP;
    return REMAT_OK;
}
