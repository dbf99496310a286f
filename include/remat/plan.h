/* Remat: plans.
 *
 * A plan decides for every layer of a profile whether its activations are kept or recomputed, and carries the schedule
 * that does so. Its peak and cost are what the simulator finds in that schedule, nothing else.
 *
 *     remat_plan_options options;
 *     remat_plan_options_init(&options);
 *     options.budget_bytes = 3000;
 *     remat_plan *plan;
 *     remat_status status = remat_plan_create(ctx, profile, &options, &plan);
 */
#ifndef REMAT_PLAN_H
#define REMAT_PLAN_H

#include <remat/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REMAT_NO_BUDGET UINT64_MAX

/* What a budget limits: everything live at once, or only the bytes kept for the backward. */
typedef enum remat_budget_counts { REMAT_COUNT_PEAK, REMAT_COUNT_KEPT } remat_budget_counts;

typedef struct remat_plan_options {
    size_t struct_size;
    const char *strategy;      /* "every-nth:2"; NULL: `optimal` under a budget, `none` without */
    uint64_t budget_bytes;     /* REMAT_NO_BUDGET: none */
    remat_budget_counts count; /* REMAT_COUNT_KEPT only with the strategy `budget` */
    bool allow_lossy;          /* modes that are not lossless may be used */
    const char *method;        /* of `optimal`: "auto" (or NULL), "exhaustive", "intervals" */
    unsigned threads;          /* of `optimal`: 0 takes all cores; the plan is the same with any number */
} remat_plan_options;
void remat_plan_options_init(remat_plan_options *options);

typedef struct remat_plan remat_plan;

/* Plans. The profile must outlive the plan and stay as it is; the caller destroys the plan.
 * REMAT_INFEASIBLE: the budget is too small for this strategy. *plan is set then too: it has no schedule, and its
 * min_budget_bytes says what would do. On any other failure *plan is NULL. */
remat_status remat_plan_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                               remat_plan **plan);
void remat_plan_destroy(remat_plan *plan);

/* What a plan states. */
typedef struct remat_plan_figures {
    bool feasible;
    bool has_budget;
    uint64_t budget_bytes;      /* where has_budget */
    uint64_t min_budget_bytes;  /* the least that this strategy can meet on this profile */
    uint64_t base_cost;         /* with everything kept */
    uint64_t base_peak_bytes;   /* likewise */
    uint64_t lower_bound_cost;  /* of every legal schedule within the budget */
    uint64_t method_bound_cost; /* of every schedule the method considers; of `optimal` only, else 0 */
    uint64_t estimated_bytes;   /* bytes kept + the largest recomputed activation */
    remat_figures schedule;     /* all zero where not feasible */
} remat_plan_figures;
const remat_plan_figures *remat_plan_get_figures(const remat_plan *plan);
const char *remat_plan_strategy(const remat_plan *plan);
const char *remat_plan_method(const remat_plan *plan); /* of `optimal`: what solved it; "" for all others */

/* Why the strategy saved no memory here, or why the budget is too small; "" where neither is so. */
const char *remat_plan_remark(const remat_plan *plan);

/* Of one layer: its decision as a mode's number, REMAT_NO_SAVE for recomputed; how often it runs forward. */
uint16_t remat_plan_decision(const remat_plan *plan, size_t layer);
uint32_t remat_plan_forwards(const remat_plan *plan, size_t layer);
/* `keep`, `recompute` or the mode's name. */
const char *remat_plan_decision_name(const remat_plan *plan, size_t layer);

/* Walks the schedule, step by step, from the start. It may be walked as often as you like. */
remat_status remat_plan_walk(const remat_plan *plan, remat_step_fn visit, void *user);

/* What is live while the peak step runs, besides that step's own output and workspace. */
remat_status remat_plan_peak_live(const remat_plan *plan, remat_live_fn visit, void *user);

/* The statistics of a plan by layers and by bytes. */
typedef struct remat_plan_statistics {
    uint64_t estimated_bytes;
    double mean_activation_bytes;
    uint64_t layers, recomputed_layers;
    double recomputed_ratio, recomputed_percent;
    uint64_t peak_reduction_bytes; /* against keeping everything; 0 where the peak did not fall */
    double peak_reduction_percent;
} remat_plan_statistics;
void remat_plan_get_statistics(const remat_plan *plan, remat_plan_statistics *statistics);

/* Writes the plan as JSON (docs/formats.md), the schedule as a stream; `with_schedule` false leaves the figures
 * alone: no layers and no schedule. */
remat_status remat_plan_write(const remat_plan *plan, FILE *stream, bool with_schedule);
remat_status remat_plan_save(const remat_plan *plan, const char *path);

/* Reads a plan for `profile` and checks it as remat_plan_check does. Its schedule is held in memory. */
remat_status remat_plan_read(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                             remat_plan **plan);
remat_status remat_plan_load(remat_context *context, const char *path, const remat_profile *profile, remat_plan **plan);

/* Replays a plan file as a stream, whoever wrote it. REMAT_CHECK_FAILED with the first illegal step, the stated
 * figure that differs, or the peak that is over the stated budget; `figures` is what the schedule really comes to. */
remat_status remat_plan_check(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                              remat_figures *figures);

/* The strategies, for help texts: name, argument ("" where none), what it does; NULL past the end. */
typedef struct remat_strategy_info {
    const char *name, *argument, *summary;
    bool needs_budget;
} remat_strategy_info;
const remat_strategy_info *remat_strategy_list(size_t position);

#ifdef __cplusplus
}
#endif
#endif
