#include "plan/chain/strategy.h"

#include <remat/revolve.h>

/* Both walk without ever holding the schedule: a million layers have tens of millions of steps. */

static remat_status walk_revolve(const remat_profile *chain, const plan_draft *draft, remat_step_fn visit, void *user)
{
    return remat_revolve_walk(chain->context, (uint32_t)chain->layer_count, draft->slots, visit, user);
}

static remat_status walk_online(const remat_profile *chain, const plan_draft *draft, remat_step_fn visit, void *user)
{
    remat_online *online;
    REMAT_TRY(remat_online_create(chain->context, draft->slots, &online));
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < chain->layer_count; i++)
        status = remat_online_advance(online, visit, user);
    if (status == REMAT_OK)
        status = remat_online_reverse(online, visit, user);
    remat_online_destroy(online);
    return status;
}

static remat_status need_slot(const plan_request *request, const char *name)
{
    if (request->count > 0)
        return REMAT_OK;
    return remat_fail(request->context, REMAT_INVALID, NULL,
                      "%s:0 has no slot; SLOTS must be at least 1, the chain's input takes one", name);
}

remat_status strategy_revolve(const plan_request *request, plan_draft *draft)
{
    draft->walk = walk_revolve;
    draft->slots = request->count;
    return need_slot(request, "revolve");
}

remat_status strategy_online(const plan_request *request, plan_draft *draft)
{
    draft->walk = walk_online;
    draft->slots = request->count;
    return need_slot(request, "online");
}
