/* Copies of what a trainer holds, for tests that compare them. The caller frees. */
#ifndef TESTS_PARAMETER_COPIES_H
#define TESTS_PARAMETER_COPIES_H

#include "support/fixture.h"

/* A parameter, what is to be known about it, and its values. */
float *parameter_copy(fixture *f, const remat_trainer *trainer, size_t position, remat_parameter *about);

/* One of its moments. */
float *moment_copy(fixture *f, const remat_trainer *trainer, size_t position, size_t moment);

#endif
