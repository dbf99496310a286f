#include "plan/strategy.h"

#include "base/alloc.h"
#include "schedule/block_schedule.h"

static remat_status walk_marks(const remat_profile *chain, const plan_draft *draft, remat_step_fn visit, void *user)
{
    return remat_block_schedule_walk(chain, draft->marks, visit, user);
}

static remat_status walk_steps(const remat_profile *chain, const plan_draft *draft, remat_step_fn visit, void *user)
{
    (void)chain;
    for (size_t i = 0; i < draft->step_count; i++)
        REMAT_TRY(visit(user, draft->steps[i]));
    return REMAT_OK;
}

remat_status plan_draft_marks(const plan_request *request, plan_draft *draft)
{
    draft->marks = remat_alloc_zeroed(request->context, request->chain->layer_count, sizeof *draft->marks);
    draft->walk = walk_marks;
    return draft->marks ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status plan_draft_add_step(remat_context *context, plan_draft *draft, remat_step step)
{
    draft->walk = walk_steps;
    REMAT_TRY(remat_grow(context, (void **)&draft->steps, &draft->step_capacity, draft->step_count + 1,
                         sizeof *draft->steps));
    draft->steps[draft->step_count++] = step;
    return REMAT_OK;
}

void plan_draft_clear(remat_context *context, size_t layer_count, plan_draft *draft)
{
    remat_release(context, draft->marks, layer_count, sizeof *draft->marks);
    remat_release(context, draft->steps, draft->step_capacity, sizeof *draft->steps);
    *draft = (plan_draft){0};
}
