#include "plan/chain/strategy.h"

remat_status strategy_none(const plan_request *request, plan_draft *draft)
{
    return plan_draft_marks(request, draft);
}
