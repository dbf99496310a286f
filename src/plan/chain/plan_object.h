/* The inside of a plan. */
#ifndef REMAT_PLAN_CHAIN_PLAN_OBJECT_H
#define REMAT_PLAN_CHAIN_PLAN_OBJECT_H

#include "graph/schedule_reader.h"
#include "plan/chain/strategy.h"

struct remat_plan {
    remat_context *context;
    const remat_profile *chain;
    const char *strategy; /* as it can be asked for: "every-nth:2" */
    remat_budget_counts count;
    plan_draft draft;
    remat_plan_figures figures;
    layer_outcome *layers; /* NULL where not feasible */
    bool of_model;         /* made without a budget of the chain: the least one and the bound are not known */
    /* What a plan file of a model says of the model's layers, which are not those of the chain; 0: it is not a model's. */
    uint64_t model_layers, recomputed_model_layers;
    char remark[320];
};

/* An empty plan for the chain. */
remat_status plan_object_create(remat_context *context, const remat_profile *chain, const char *strategy,
                                remat_plan **plan);

/* Replays the plan's draft and fills in everything that follows from its schedule. */
remat_status plan_object_replay(remat_plan *plan);

/* Takes decisions and forwards of a schedule that was played to its end, and the estimate that follows. */
void plan_object_take_outcomes(remat_plan *plan, const remat_simulator *simulator);

/* Cost and peak with everything kept, the same way. */
remat_status plan_object_replay_base(remat_plan *plan);

/* Puts into the plan's remark why it saves nothing against keeping everything, where that is so (plan.c). */
void plan_object_explain(remat_plan *plan);

/* plan_bounds.c: the smallest budget that the plan's strategy can meet for its chain, and a cost that no schedule with at
 * most the plan's peak goes below. For a plan that was made without a budget of the chain: that of a model. */
remat_status plan_object_find_bounds(const remat_plan *plan, uint64_t *min_budget, uint64_t *lower_bound);

/* The layer whose step makes the peak of a plan that has a schedule; NULL where none does. */
const char *plan_object_peak_layer(const remat_plan *plan);

/* Records that the plan has no schedule, with the budget that it would need; returns REMAT_INFEASIBLE. */
remat_status plan_object_fail_infeasible(remat_context *context, const remat_plan *plan);

/* What the tensors of a model's plan come to once they are placed: written along with it. */
typedef struct plan_placement {
    uint64_t arena_bytes, total_bytes;
    uint64_t total_budget_bytes;                             /* REMAT_NO_BUDGET: none */
    uint64_t min_total_budget_bytes;                         /* the smallest that the strategy can meet */
    uint64_t keep_all_total_bytes;                           /* with everything kept */
    uint64_t model_layers, recomputed_model_layers;          /* as the model has them: the chain's are pieces */
    uint64_t chain_min_budget_bytes, chain_lower_bound_cost; /* plan_object_find_bounds */
} plan_placement;
remat_status plan_write_placed(const remat_plan *plan, const plan_placement *placement, FILE *stream,
                               bool with_schedule);

#endif
