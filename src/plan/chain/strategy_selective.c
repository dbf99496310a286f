#include "plan/chain/strategy.h"

#include "graph/block_schedule.h"

/* Recomputes exactly k = round(ratio * n) layers, at the positions floor(j * n / k). */
remat_status strategy_selective(const plan_request *request, plan_draft *draft)
{
    if (!(request->ratio >= 0.0 && request->ratio <= 1.0))
        return remat_fail(request->context, REMAT_INVALID, NULL, "selective:%g is not a share; it must be from 0 to 1",
                          request->ratio);
    REMAT_TRY(plan_draft_marks(request, draft));
    uint64_t n = request->chain->layer_count;
    double wanted = request->ratio * (double)n;
    uint64_t k = (uint64_t)wanted;
    k += wanted - (double)k >= 0.5; /* halves up; adding 0.5 first would round once too often */
    for (uint64_t j = 0; j < k; j++)
        draft->marks[j * n / k] = MARK_RECOMPUTE;
    return REMAT_OK;
}
