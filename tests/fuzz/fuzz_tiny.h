/* A tiny model with the layers whose parameters differ most, for the targets that load files into a trainer. */
#ifndef TESTS_FUZZ_TINY_H
#define TESTS_FUZZ_TINY_H

#include "fuzz/fuzz.h"

remat_model *fuzz_tiny_model(remat_context *context);
remat_model *fuzz_small_state_model(remat_context *context); /* the same with moments in 8 bits */

/* Options with data of its own. */
remat_train_options fuzz_tiny_options(void);

#endif
