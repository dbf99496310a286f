/* The cheapest schedule of a very short chain by plain Dijkstra: all states, all legal steps of the specification's
 * table, anything dropped at any time, nothing left out. Written apart from the library, over its public headers
 * only. */
#ifndef TESTS_BRUTE_FORCE_H
#define TESTS_BRUTE_FORCE_H

#include <remat/remat.h>

#define BRUTE_FORCE_MOST_LAYERS 5

typedef struct brute_answer {
    bool feasible;
    uint64_t cost;
    uint64_t peak; /* of one cheapest schedule; at most the budget */
} brute_answer;

brute_answer brute_force(const remat_profile *profile, uint64_t budget, bool allow_lossy);

/* The least peak of any schedule, whatever it costs. */
uint64_t brute_force_min_budget(const remat_profile *profile, bool allow_lossy);

#endif
