/* The classic memory-persistent dynamic program on memory slots (rotor's recurrence), to compare with. */
#ifndef BENCH_PERSISTENT_SLOTS_H
#define BENCH_PERSISTENT_SLOTS_H

#include <remat/remat.h>

/* Walks its schedule for a budget cut into `slots` slots, every size rounded up to them; only the mode `keep` is used.
 * REMAT_INFEASIBLE where it finds none, REMAT_NO_MEMORY (n^2/2 rows of slots numbers), or what `visit` returns. */
remat_status persistent_slots_walk(const remat_profile *profile, uint64_t budget, size_t slots, remat_step_fn visit,
                                   void *user);

#endif
