/* Remat: plans.
 *
 * A plan says for each layer of a profile whether its activations are kept or recomputed. It holds the schedule that
 * does this, with its exact peak and cost.
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

/* ---- making a plan ---- */

#define REMAT_NO_BUDGET UINT64_MAX

/* What a budget limits. */
typedef enum remat_budget_counts {
    REMAT_COUNT_PEAK, /* the peak: everything that is live at once */
    REMAT_COUNT_KEPT  /* only the bytes that are kept for the backward pass */
} remat_budget_counts;

typedef struct remat_plan_options {
    size_t struct_size;
    const char *strategy;              /* such as "every-nth:2". NULL: `optimal` with a budget, `none` without one */
    uint64_t budget_bytes;             /* REMAT_NO_BUDGET: no limit */
    remat_budget_counts budget_counts; /* REMAT_COUNT_KEPT only with the strategy `budget` */
    bool allow_lossy;                  /* modes that are not lossless may be used */
    const char *method;                /* for `optimal`: "auto" (or NULL), "exhaustive" or "intervals" */
    unsigned threads;                  /* for `optimal`: 0 means all cores. The plan does not depend on it */
} remat_plan_options;
void remat_plan_options_init_sized(remat_plan_options *options, size_t size);
static inline void remat_plan_options_init(remat_plan_options *options)
{
    remat_plan_options_init_sized(options, sizeof *options);
}

typedef struct remat_plan remat_plan;

/* Makes a plan. The profile must outlive the plan and must not change. Strings of the options are copied.
 *   REMAT_INFEASIBLE  this strategy cannot meet the budget. *plan is still set, to a plan without a schedule. Its
 *                     min_budget_bytes, and remat_error on the context, say which budget would be enough.
 *   REMAT_INVALID     an option; REMAT_NO_MEMORY. *plan is NULL. */
remat_status remat_plan_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                               remat_plan **plan);
void remat_plan_destroy(remat_plan *plan);

/* ---- what a plan says ---- */

/* The figures of a plan. They belong to the plan. `schedule` is always the last member, because it may grow. */
typedef struct remat_plan_figures {
    bool feasible;
    bool has_budget;
    uint64_t budget_bytes;      /* if has_budget */
    uint64_t min_budget_bytes;  /* the smallest budget that this strategy can meet for this profile */
    uint64_t base_cost;         /* the cost with everything kept */
    uint64_t base_peak_bytes;   /* the peak with everything kept */
    uint64_t lower_bound_cost;  /* no legal schedule within the budget is cheaper than this */
    uint64_t method_bound_cost; /* no schedule that the method considers is cheaper; 0 except for `optimal` */
    uint64_t estimated_bytes;   /* the bytes kept plus the largest recomputed activation */
    remat_figures schedule;     /* all 0 if not feasible */
} remat_plan_figures;
const remat_plan_figures *remat_plan_get_figures(const remat_plan *plan);

/* The strategy, such as "every-nth:2", and the method of `optimal` that found the plan ("" for other strategies). */
const char *remat_plan_strategy(const remat_plan *plan);
const char *remat_plan_method(const remat_plan *plan);

/* Why the plan saves no memory, or why the budget is too small. "" if neither is the case. */
const char *remat_plan_remark(const remat_plan *plan);

/* What the plan decides for a layer: the number of a mode, or REMAT_NO_SAVE if the layer is recomputed. */
uint16_t remat_plan_decision(const remat_plan *plan, size_t layer);
/* The same as a name: "keep", "recompute", or the name of the mode. */
const char *remat_plan_decision_name(const remat_plan *plan, size_t layer);
/* How often the layer runs forward. */
uint32_t remat_plan_forwards(const remat_plan *plan, size_t layer);

/* Walks the schedule from its first step. It can be walked as often as needed. REMAT_INFEASIBLE: the plan has no
 * schedule. Otherwise REMAT_NO_MEMORY or the status that `visit` returned. */
remat_status remat_plan_walk(const remat_plan *plan, remat_step_fn visit, void *user);

/* Calls `visit` for each tensor that is live when the peak step begins. The output and the workspace of that step are
 * not among them. REMAT_INFEASIBLE: the plan has no schedule. */
remat_status remat_plan_peak_live(const remat_plan *plan, remat_live_fn visit, void *user);

/* Statistics of a plan, by layers and by bytes. */
typedef struct remat_plan_statistics {
    uint64_t estimated_bytes;
    double mean_activation_bytes;
    uint64_t layers, recomputed_layers;
    double recomputed_ratio, recomputed_percent;
    uint64_t peak_reduction_bytes; /* compared with keeping everything; 0 if the peak did not fall */
    double peak_reduction_percent;
} remat_plan_statistics;
void remat_plan_get_statistics_sized(const remat_plan *plan, remat_plan_statistics *statistics, size_t statistics_size);
static inline void remat_plan_get_statistics(const remat_plan *plan, remat_plan_statistics *statistics)
{
    remat_plan_get_statistics_sized(plan, statistics, sizeof *statistics);
}

/* ---- files ---- */

/* Writes a plan as JSON (docs/formats.md). `with_schedule` false: figures only, without layers and schedule. `save`
 * replaces the file only when everything was written. REMAT_IO. */
remat_status remat_plan_write(const remat_plan *plan, FILE *stream, bool with_schedule);
remat_status remat_plan_save(const remat_plan *plan, const char *path);

/* Reads a plan for `profile` and checks it as remat_plan_check does. The whole schedule is held in memory. `name`
 * stands for the stream in messages. The caller destroys the plan; the profile must outlive it. */
remat_status remat_plan_load(remat_context *context, const char *path, const remat_profile *profile, remat_plan **plan);
remat_status remat_plan_read(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                             remat_plan **plan);

/* Checks a plan file by playing its schedule. Gives the figures of that schedule, even if a figure in the file is
 * wrong. The file may be from any program; only the layers are held in memory.
 *   REMAT_CHECK_FAILED  a step is illegal, a figure in the file is wrong, or the peak is over the budget in the file;
 *   REMAT_BAD_INPUT     the file is not a plan; REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_plan_check_sized(remat_context *context, FILE *stream, const char *name,
                                    const remat_profile *profile, remat_figures *figures, size_t figures_size);
static inline remat_status remat_plan_check(remat_context *context, FILE *stream, const char *name,
                                            const remat_profile *profile, remat_figures *figures)
{
    return remat_plan_check_sized(context, stream, name, profile, figures, sizeof *figures);
}

/* ---- the strategies ---- */

/* An entry of the list of strategies, for help texts, by its position from 0. NULL past the end. Safe from any
 * thread. */
typedef struct remat_strategy_info {
    const char *name;
    const char *argument; /* "" if it takes none */
    const char *summary;
    bool needs_budget;
} remat_strategy_info;
const remat_strategy_info *remat_strategy_list(size_t position);

#ifdef __cplusplus
}
#endif
#endif
