/* What the optimal planner needs to know about a chain, in constant time per question. */
#ifndef REMAT_PLAN_OPTIMAL_MODEL_H
#define REMAT_PLAN_OPTIMAL_MODEL_H

#include "profile/chain.h"

/* Every sum of bytes or costs the engine forms from at most three stored figures stays below 2^64. */
#define FIGURE_LIMIT ((uint64_t)1 << 61)

typedef struct period_run {
    size_t begin, end, period; /* layers begin..end-1 repeat with this period */
} period_run;

typedef struct optimal_model {
    const remat_profile *chain;
    size_t n;
    uint32_t mode_limit; /* 1 + the highest index of a mode that any layer may use */
    bool modes_left_out; /* there are more, which would take too long */
    bool allow_lossy;
    uint64_t *x;              /* n + 1: bytes of x_i */
    uint64_t *y;              /* n + 1: bytes of y_i */
    uint64_t *forward_before; /* n + 1: cost of plain forwards 0..i-1 */
    uint64_t *move_peak;      /* levels * n: maxima of x_k + x_{k+1} + workspace over 2^level layers */
    uint32_t *rank;           /* n + 1: over how wide a window (2^rank) cutting at x_i is the cheapest place */
    period_run *runs;         /* where layers repeat */
    size_t run_count, run_capacity;
    int32_t *run_of; /* n: the run a layer is in, or -1 */
    uint64_t keep_all_peak, base_cost;
} optimal_model;

/* REMAT_INVALID where sums reach the limit above, REMAT_NO_MEMORY. A model that was not built is all zero. */
remat_status optimal_model_build(remat_context *context, const remat_profile *chain, bool allow_lossy,
                                 optimal_model *model);
void optimal_model_free(remat_context *context, optimal_model *model);

/* Whether the sums of all figures of the chain stay below FIGURE_LIMIT. */
bool optimal_figures_fit(const remat_profile *chain);

/* The mode, or NULL where the layer has no such mode or may not use it. */
const remat_mode *optimal_model_mode(const optimal_model *model, size_t layer, uint32_t mode);

/* Most bytes, beyond x_i, of the plain forwards i..j-1 (i < j), each x dropped after it was read. */
uint64_t optimal_model_run_peak(const optimal_model *model, size_t i, size_t j);

/* The first start of an interval that looks exactly like start..last, its neighbours included. */
size_t optimal_model_canonical_start(const optimal_model *model, size_t start, size_t last);

/* optimal_periods.c: fills runs, run_count, run_of. */
remat_status optimal_find_runs(remat_context *context, optimal_model *model);

#endif
