/* What a strategy is asked, what it answers, and the table of all of them.
 *
 * A strategy answers with a draft: a schedule that can be walked as often as needed, and what it knows about budgets.
 * Peak, cost, decisions and everything else in a plan come from the simulator that walks the draft. To add a
 * strategy: one file, one declaration below, one line in strategy_table.c. */
#ifndef REMAT_PLAN_CHAIN_STRATEGY_H
#define REMAT_PLAN_CHAIN_STRATEGY_H

#include <remat/plan.h>
#include <remat/units.h>

#include "graph/chain.h"

typedef enum argument_kind { ARGUMENT_NONE, ARGUMENT_COUNT, ARGUMENT_OPTIONAL_COUNT, ARGUMENT_RATIO } argument_kind;

typedef struct plan_request {
    remat_context *context;
    const remat_profile *chain;
    const remat_plan_options *options;
    uint64_t count; /* the argument: of ARGUMENT_OPTIONAL_COUNT 1 where it is not given, of ARGUMENT_RATIO billionths */
} plan_request;

typedef struct plan_draft plan_draft;
struct plan_draft {
    /* Walks the schedule. Exactly one of the stores below is what it walks. */
    remat_status (*walk)(const remat_profile *chain, const plan_draft *draft, remat_step_fn visit, void *user);
    uint8_t *marks;    /* one a layer; block_schedule.h */
    remat_step *steps; /* the schedule as it is */
    size_t step_count, step_capacity;
    uint64_t slots;  /* of `revolve` and `online` */
    bool infeasible; /* no schedule of this strategy meets the budget */
    bool knows_min_budget;
    uint64_t min_budget_bytes;
    const char *method;         /* of `optimal`; NULL for all others */
    uint64_t lower_bound_cost;  /* of any legal schedule, where the strategy knows one; else 0 */
    uint64_t method_bound_cost; /* of any schedule the method considers, likewise */
    char remark[256];           /* why it is infeasible or saves nothing, where the strategy knows */
    const char *peak_layer;     /* where infeasible: the layer that needs min_budget_bytes; NULL: not known */
};

/* Makes an empty draft of marks, all MARK_KEEP. This is the strategy `none`. */
remat_status plan_draft_marks(const plan_request *request, plan_draft *draft);
/* Appends a step to a draft of steps. */
remat_status plan_draft_add_step(remat_context *context, plan_draft *draft, remat_step step);
/* Plays a draft to its end, in the caller's simulator or in one of its own. */
remat_status plan_draft_play_into(const remat_profile *chain, const plan_draft *draft, remat_simulator *simulator,
                                  remat_figures *figures);
remat_status plan_draft_play(remat_context *context, const remat_profile *chain, const plan_draft *draft,
                             remat_figures *figures);
/* The step that a draft takes at `position`, and the layer that the step runs: its name, NULL where it runs none. */
remat_status plan_draft_step_at(const remat_profile *chain, const plan_draft *draft, uint64_t position,
                                remat_step *step);
const char *plan_step_layer_name(const remat_profile *chain, remat_step step);
void plan_draft_clear(remat_context *context, size_t layer_count, plan_draft *draft);

typedef remat_status (*strategy_fn)(const plan_request *request, plan_draft *draft);

typedef struct strategy_entry {
    remat_strategy_info info;
    argument_kind argument;
    strategy_fn plan;
} strategy_entry;

/* Finds `every-nth:2` in the table and reads its argument into the request. REMAT_INVALID. */
remat_status remat_strategy_parse(plan_request *request, const char *text, const strategy_entry **found);

/* The strategies. */
remat_status strategy_full(const plan_request *request, plan_draft *draft);
remat_status strategy_selective(const plan_request *request, plan_draft *draft);
remat_status strategy_attention_only(const plan_request *request, plan_draft *draft);
remat_status strategy_ffn_only(const plan_request *request, plan_draft *draft);
remat_status strategy_every_nth(const plan_request *request, plan_draft *draft);
remat_status strategy_largest(const plan_request *request, plan_draft *draft);
remat_status strategy_budget(const plan_request *request, plan_draft *draft);
remat_status strategy_sqrt(const plan_request *request, plan_draft *draft);
remat_status strategy_revolve(const plan_request *request, plan_draft *draft);
remat_status strategy_optimal(const plan_request *request, plan_draft *draft);
remat_status strategy_online(const plan_request *request, plan_draft *draft);

/* How `optimal` solves: by searching all schedules of a short chain, or over intervals. */
typedef enum optimal_method { METHOD_EXHAUSTIVE, METHOD_INTERVALS } optimal_method;

/* The method that the options ask for; by default the search where the chain is short enough for it. */
remat_status optimal_method_choose(remat_context *context, const remat_profile *chain,
                                   const remat_plan_options *options, optimal_method *method);
const char *optimal_method_name(optimal_method method);
/* The name as the library spells it, or NULL where there is no such method. */
const char *optimal_method_find(const char *name);

#endif
