/* Remat: the whole curve of cost over memory.
 *
 * One solve gives every plan worth having: with each point less memory costs more. The point of the curve at the
 * budget B is what remat_plan_create returns for the budget B. */
#ifndef REMAT_SWEEP_H
#define REMAT_SWEEP_H

#include <remat/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_sweep remat_sweep;

/* Solves. Of the options it uses `method`, `allow_lossy` and `threads`. The profile must outlive the sweep. */
remat_status remat_sweep_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                                remat_sweep **sweep);
void remat_sweep_destroy(remat_sweep *sweep);

/* The points, from the smallest peak to the cheapest plan: peaks rise, costs fall. */
typedef struct remat_sweep_point {
    uint64_t peak_bytes, total_cost;
} remat_sweep_point;
size_t remat_sweep_count(const remat_sweep *sweep);
remat_sweep_point remat_sweep_get(const remat_sweep *sweep, size_t position);

/* The point where the curve bends most: the one farthest below the line between its two ends. */
size_t remat_sweep_knee(const remat_sweep *sweep);

/* Which method solved it, "exhaustive" or "intervals". */
const char *remat_sweep_method(const remat_sweep *sweep);

/* The plan of a point; the caller destroys it. */
remat_status remat_sweep_plan(const remat_sweep *sweep, size_t position, remat_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
