/* Random chains, and random complete schedules of them. */
#ifndef TESTS_RANDOM_PROFILE_H
#define TESTS_RANDOM_PROFILE_H

#include "support/cases.h"
#include "support/slow_replay.h"

/* What a random chain has besides plain layers. */
typedef struct random_traits {
    size_t least_layers, most_layers;
    bool modes;
    bool odd_names; /* quotes, backslashes, control characters, letters outside ASCII */
} random_traits;

/* A chain that draws its own character first: with or without workspaces, with few or many different sizes (few make
 * ties), with zeros, with input bytes, with indexes that are not positions. */
remat_profile *random_profile(remat_context *context, test_random *random, const random_traits *traits);

/* A legal schedule from start to end that wanders: it saves in any mode, drops what it will need again, and makes it
 * again. */
void random_schedule(const remat_profile *profile, test_random *random, step_list *steps);

#endif
