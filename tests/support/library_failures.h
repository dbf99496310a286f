/* Runs the same calls again and again, each time with one more call of a library failing that stands in the place of another. */
#ifndef TESTS_LIBRARY_FAILURES_H
#define TESTS_LIBRARY_FAILURES_H

#include "support/memory_failures.h"

typedef struct failing_library {
    int *calls;    /* so far */
    int *fails_at; /* 0: none */
    int *open;     /* what was not closed */
} failing_library;

/* Runs `flow` with the n-th call failing, for n = 1, 2, ... until none fails. At least `least` times the flow must return REMAT_IO, with
 * `message` in its text. Otherwise a failure may stay without consequence, as when something is closed. Nothing may stay open. */
void expect_calls_survived(fixture *f, memory_flow flow, void *user, const failing_library *library,
                           const char *message, int least);

#endif
