#ifndef REMAT_PLAN_CHAIN_CURVE_KNEE_H
#define REMAT_PLAN_CHAIN_CURVE_KNEE_H

#include <remat/sweep.h>

typedef remat_sweep_point (*curve_point_fn)(const void *curve, size_t position);

/* The point where a curve bends most: the one farthest below the line between its two ends. From each point to the next
 * memory rises and cost falls. 0 where the ends are all there is. */
size_t curve_knee(curve_point_fn point_at, const void *curve, size_t count);

#endif
