/* Runs the same calls again and again, each time with one more allocation failing. */
#ifndef TESTS_MEMORY_FAILURES_H
#define TESTS_MEMORY_FAILURES_H

#include "support/fixture.h"

/* Makes its calls in the context, gives everything back, and returns the first status that is not REMAT_OK. */
typedef remat_status (*memory_flow)(remat_context *context, void *user);

/* Runs `flow` with its n-th allocation failing, for n = 1, 2, ... until none fails. Each time the flow must return
 * REMAT_NO_MEMORY, the context must say so, and nothing may be lost. The same flow in the same context must work as soon
 * as there is memory. `least` is how many allocations the flow makes at least, so that it does not do nothing by
 * mistake. Beyond the first `all` failures only some are tried, so that long flows stay short. */
void expect_failures_survived(const char *name, memory_flow flow, void *user, uint64_t least, uint64_t all);

/* The same with a context that takes no reserve: each text of a pool and each growing by one item is an allocation that
 * fails once. There are many more of them, so this is for short flows. */
void expect_failures_without_reserve_survived(const char *name, memory_flow flow, void *user, uint64_t least,
                                              uint64_t all);

/* One call on objects that live, with each of its allocations failing in turn: it says so, and works as soon as there is
 * memory. The fixture finds what was lost. Of many failures only some are tried. */
typedef remat_status (*memory_call)(void *user);
void expect_call_failures_survived(fixture *f, const char *name, memory_call call, void *user, uint64_t least);

/* Goes on in a flow as long as nothing failed. */
#define FLOW(status, call)        \
    do {                          \
        if ((status) == REMAT_OK) \
            (status) = (call);    \
    } while (0)

#endif
