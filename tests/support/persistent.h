/* The best memory-persistent schedule (Beaumont, Herrmann, Pallez and Shilova, 2019): a state that is kept stays until
 * its backward. Plain recursion in exact bytes, for short chains; tests compare the planner with it. */
#ifndef TESTS_PERSISTENT_H
#define TESTS_PERSISTENT_H

#include <remat/remat.h>

/* Its cost within the budget; UINT64_MAX where there is none. Only the mode `keep` is used. */
uint64_t persistent_cost(const remat_profile *profile, uint64_t budget);

#endif
