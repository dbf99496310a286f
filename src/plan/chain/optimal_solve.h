/* The optimal planner over intervals of the chain: one solve, the whole curve of cost against memory.
 *
 * Every point of the curve is a schedule that can be walked, and its peak and cost are never rounded. Chains of up to
 * 40 layers are solved exactly within the class of optimal_choices.h where their staircases are not too long
 * (optimal_is_exact); up to 100 with all cuts, but without corners that were never found to matter; longer ones with fewer
 * cuts and thinned staircases. 340 layers take some 2 seconds of processor time, 1,000 about 7 and 150 MB, 10,000 about 11
 * and 200 MB where layers repeat, shared by all threads. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_SOLVE_H
#define REMAT_PLAN_CHAIN_OPTIMAL_SOLVE_H

#include <remat/schedule.h>

typedef struct optimal_options {
    bool allow_lossy;
    unsigned threads; /* 0: all there are. The curve does not depend on it */
} optimal_options;

typedef struct optimal_solution optimal_solution;

/* The chain must outlive the solution and stay as it is; the caller destroys the solution, before the context.
 * REMAT_INVALID where the sums of the chain's figures reach 2^61 or it has more than 50,000 layers, REMAT_NO_MEMORY.
 * *solution is NULL on failure. */
remat_status optimal_solve(remat_context *context, const remat_profile *chain, const optimal_options *options,
                           optimal_solution **solution);
void optimal_solution_destroy(optimal_solution *solution);

/* The points of the curve, at least one: from the smallest budget that the class can meet (exactly that up to 1,500
 * layers) to keeping everything, peaks rising and costs falling strictly. */
size_t optimal_curve_count(const optimal_solution *solution);
void optimal_curve_point(const optimal_solution *solution, size_t i, uint64_t *peak_bytes, uint64_t *cost);

/* Whether the curve is the class's own: nothing was thinned or cut short, and all cuts and modes were tried. */
bool optimal_is_exact(const optimal_solution *solution);

/* Walks the schedule of a point: its peak is at most the point's, its cost the same. Anything but REMAT_OK from `visit`
 * ends the walk and comes back. REMAT_NO_MEMORY. */
remat_status optimal_walk(const optimal_solution *solution, size_t point, remat_step_fn visit, void *user);

#endif
