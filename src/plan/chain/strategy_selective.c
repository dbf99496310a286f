#include "plan/chain/strategy.h"

#include "base/share.h"
#include "graph/block_schedule.h"

/* Recomputes exactly k = round(ratio * n) layers, halves up, at the positions floor(j * n / k). */
remat_status strategy_selective(const plan_request *request, plan_draft *draft)
{
    REMAT_TRY(plan_draft_marks(request, draft));
    uint64_t n = request->chain->layer_count, k = (2 * request->count * n + REMAT_SHARE_ONE) / (2 * REMAT_SHARE_ONE);
    for (uint64_t j = 0; j < k; j++)
        draft->marks[j * n / k] = MARK_RECOMPUTE;
    return REMAT_OK;
}
