#include "plan/chain/strategy.h"

#include "base/alloc.h"
#include "graph/block_schedule.h"

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

static remat_status play_step(void *simulator, remat_step step)
{
    return remat_simulator_step(simulator, step);
}

remat_status plan_draft_play_into(const remat_profile *chain, const plan_draft *draft, remat_simulator *simulator,
                                  remat_figures *figures)
{
    if (draft->walk) /* an empty draft has nothing to walk */
        REMAT_TRY(draft->walk(chain, draft, play_step, simulator));
    return remat_simulator_finish(simulator, figures);
}

remat_status plan_draft_play(remat_context *context, const remat_profile *chain, const plan_draft *draft,
                             remat_figures *figures)
{
    remat_simulator *simulator;
    REMAT_TRY(remat_simulator_create(context, chain, &simulator));
    remat_status status = plan_draft_play_into(chain, draft, simulator, figures);
    remat_simulator_destroy(simulator);
    return status;
}

typedef struct step_finder {
    uint64_t wanted, at;
    remat_step step;
} step_finder;

static remat_status find_step(void *user, remat_step step)
{
    step_finder *finder = user;
    if (finder->at++ == finder->wanted)
        finder->step = step;
    return REMAT_OK;
}

remat_status plan_draft_step_at(const remat_profile *chain, const plan_draft *draft, uint64_t position,
                                remat_step *step)
{
    step_finder finder = {.wanted = position};
    REMAT_TRY(draft->walk(chain, draft, find_step, &finder));
    *step = finder.step;
    return REMAT_OK;
}

const char *plan_step_layer_name(const remat_profile *chain, remat_step step)
{
    bool runs_layer = step.op == REMAT_FORWARD || step.op == REMAT_BACKWARD;
    return runs_layer ? chain->layers[step.layer].name : NULL;
}

void plan_draft_clear(remat_context *context, size_t layer_count, plan_draft *draft)
{
    remat_release(context, draft->marks, layer_count, sizeof *draft->marks);
    remat_release(context, draft->steps, draft->step_capacity, sizeof *draft->steps);
    *draft = (plan_draft){0};
}
