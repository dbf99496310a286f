/* What cmocka needs, and the seed of a test that uses random numbers: fresh at every run, printed on failure. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* REMAT_SEED from the environment: a number, or `random` for a new one at every call. Without it the seed is fixed, so that a
 * commit that passed passes again. */
uint64_t test_seed(void);

/* A small generator for tests, apart from the library's. */
typedef struct test_random {
    uint64_t state;
} test_random;
uint64_t test_random_next(test_random *random);
/* From 0 to bound - 1. */
uint64_t test_random_below(test_random *random, uint64_t bound);

#endif
