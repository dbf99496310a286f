/* Chains with repeated layers, and the curves of the optimal planner played through the simulator. */
#ifndef TESTS_CURVES_H
#define TESTS_CURVES_H

#include "plan/chain/optimal_solve.h"
#include "support/fixture.h"

/* Appends layers first..first+count-1 of one chain to another, `times` over. */
void append_layers(fixture *f, remat_profile *to, const remat_profile *from, size_t first, size_t count, size_t times);

/* A chain of `layers` layers that repeats one of its own random beginnings, with other layers before and behind. */
remat_profile *repeating_chain(fixture *f, test_random *random, size_t layers, bool modes);

/* Plays a point's schedule: legal, its peak at most the point's and its cost the same. */
void expect_real_point(fixture *f, const remat_profile *profile, const optimal_solution *solution, size_t point);

/* Peaks rise and costs fall strictly, the last point is no dearer than keeping everything, and every stride-th point is
 * real, the first and the last too. */
void expect_real_curve(fixture *f, const remat_profile *profile, const optimal_solution *solution, size_t stride);

void expect_same_curve(const optimal_solution *a, const optimal_solution *b);

#endif
