/* Random chains so short that every schedule of them can be tried. */
#ifndef TESTS_TINY_CHAIN_H
#define TESTS_TINY_CHAIN_H

#include "support/fixture.h"

/* A chain of `layers` layers (12 at most) that draws its own character: sizes equal, mixed, heavy-tailed, huge or often
 * zero; outputs whole or small; with or without workspaces; costs small, often zero or so high that few recomputations
 * reach 2^63. Up to `most_modes` modes a layer (4 at most) besides `keep`: lossy or not, with or without the output,
 * some smaller than the output they hold or cheaper than a plain forward. */
remat_profile *tiny_chain(fixture *f, test_random *random, size_t layers, size_t most_modes);

/* Prints the chain, for a test that fails. */
void tiny_chain_print(const remat_profile *profile);

#endif
