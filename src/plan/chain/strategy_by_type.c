#include "plan/chain/strategy.h"

#include "graph/block_schedule.h"

/* attention-only and ffn-only: the layers of one type are recomputed. */
static remat_status recompute_type(const plan_request *request, plan_draft *draft, remat_layer_type type)
{
    REMAT_TRY(plan_draft_marks(request, draft));
    size_t found = 0;
    for (size_t i = 0; i < request->chain->layer_count; i++)
        if (request->chain->layers[i].type == type) {
            draft->marks[i] = MARK_RECOMPUTE;
            found++;
        }
    if (found == 0)
        snprintf(draft->remark, sizeof draft->remark, "no layer is of type %s", remat_layer_type_name(type));
    return REMAT_OK;
}

remat_status strategy_attention_only(const plan_request *request, plan_draft *draft)
{
    return recompute_type(request, draft, REMAT_ATTENTION);
}

remat_status strategy_ffn_only(const plan_request *request, plan_draft *draft)
{
    return recompute_type(request, draft, REMAT_FFN);
}
