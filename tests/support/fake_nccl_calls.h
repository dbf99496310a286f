/* The NCCL of the tests (tests/comm/fake_nccl.c), for the fenced device. */
#ifndef TESTS_FAKE_NCCL_CALLS_H
#define TESTS_FAKE_NCCL_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* What a test may look at and set; fake_nccl.c says what it is. */
typedef struct fake_nccl_calls {
    int *calls, *fails_at, *late_error, *open, *version;
} fake_nccl_calls;

/* Loads it in the place of NCCL's library, before anybody asks for that, and lets it into the fenced device, whose devices have this identity.
 * False: it cannot be loaded. */
bool fake_nccl_load(const char *file, uint64_t identity, fake_nccl_calls *fake);

#endif
