#include "plan/chain/strategy.h"

/* Chen, Xu, Zhang and Guestrin (2016): blocks of about sqrt(N) layers. */
remat_status strategy_sqrt(const plan_request *request, plan_draft *draft)
{
    uint64_t n = request->chain->layer_count, length = 1;
    while (length * length < n)
        length++;
    plan_request blocks = *request;
    blocks.count = length;
    return strategy_full(&blocks, draft);
}
