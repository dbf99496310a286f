/* The recursion of the optimal planner read plainly: byte by byte, no staircases, no sharing, all cuts. Written over
 * the public headers only, for chains of a few layers and a few bytes. */
#ifndef TESTS_PLAIN_RECURSION_H
#define TESTS_PLAIN_RECURSION_H

#include <remat/remat.h>

enum { PLAIN_MOST_LAYERS = 7, PLAIN_MOST_BYTES = 200, PLAIN_MOST_MODES = 2 };

#define PLAIN_NEVER ((uint64_t)1 << 60)

typedef struct plain_recursion plain_recursion;
plain_recursion *plain_recursion_start(const remat_profile *profile);
void plain_recursion_end(plain_recursion *recursion);

/* The least cost within this budget, below PLAIN_MOST_BYTES; PLAIN_NEVER where there is none. */
uint64_t plain_recursion_cost(plain_recursion *recursion, uint64_t budget);

#endif
