/* Remat: the whole curve of cost over memory.
 *
 * A sweep finds the best plans for all budgets in one solve. Each point of the curve is a plan. Each next point needs
 * more memory and costs less. For a budget B, remat_plan_create makes the plan of the last point that fits into B. */
#ifndef REMAT_SWEEP_H
#define REMAT_SWEEP_H

#include <remat/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_sweep remat_sweep;

/* Finds the curve. Of the options only method, allow_lossy and threads are used. The profile must outlive the sweep and
 * must not change. REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_sweep_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                                remat_sweep **sweep);
void remat_sweep_destroy(remat_sweep *sweep);

/* How many points the curve has. */
size_t remat_sweep_count(const remat_sweep *sweep);

/* A point of the curve. Point 0 has the smallest peak, the last point the lowest cost. REMAT_INVALID past the end. */
typedef struct remat_sweep_point {
    uint64_t peak_bytes, total_cost;
} remat_sweep_point;
remat_status remat_sweep_get_point_sized(const remat_sweep *sweep, size_t position, remat_sweep_point *point,
                                         size_t point_size);
static inline remat_status remat_sweep_get_point(const remat_sweep *sweep, size_t position, remat_sweep_point *point)
{
    return remat_sweep_get_point_sized(sweep, position, point, sizeof *point);
}

/* The position of the point where the curve bends most: the point farthest below the straight line between both
 * ends. */
size_t remat_sweep_knee(const remat_sweep *sweep);

/* Makes the plan of a point. The caller destroys it. REMAT_INVALID past the end, REMAT_NO_MEMORY. */
remat_status remat_sweep_plan(const remat_sweep *sweep, size_t position, remat_plan **plan);

/* The method that found the curve: "exhaustive" or "intervals". */
const char *remat_sweep_method(const remat_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
