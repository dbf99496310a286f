/* A communicator of one process that stands for several ranks: the others have what this one has. What is sent is lost, and
 * what is received stays as it is, so that nothing waits. One of its transfers can fail. */
#ifndef TESTS_ECHO_RANKS_H
#define TESTS_ECHO_RANKS_H

#include "comm/comm.h"

typedef struct echo_ranks {
    remat_communicator base; /* options.communicator = &ranks.base */
    uint64_t calls;          /* of starts and tests, so far */
    uint64_t fail_at;        /* the number of the call that fails, from 1; 0: none */
    uint64_t requests;       /* so far: broadcasts of eight bytes by rank 0, which asks for tensors when it saves */
    uint32_t starts[3];      /* where two stages begin and end, as rank 0 broadcasts it; all 0: it broadcasts nothing */
    uint64_t part_size;      /* ranks of each part that they are split into */
    struct echo_ranks *whole; /* of a part: what it is a part of, which counts the calls */
} echo_ranks;

/* Needs no closing. */
echo_ranks echo_ranks_make(remat_context *context, uint64_t rank, uint64_t size);

#endif
