/* The sum of gradients over the micro-batches of a step that several ranks share.
 *
 * Micro-batch m belongs to rank m mod N. The sum of a gradient is ((g0 + g1) + g2) + ..., the order in which one process
 * adds them, so its bits do not depend on N. It travels: a rank receives the sum so far from the rank before, adds its own
 * gradient, and sends it on.
 *
 *     rank 0   forward  backward: add g0 ->           forward  backward: add g3 ->
 *     rank 1     forward  backward:   add g1 ->         forward  backward:   add g4 ->
 *     rank 2       forward  backward:     add g2 -> 0     forward  backward:     add g5 -> all
 *
 * A rank waits only until the rank before has added the same gradient, so all ranks compute at once, each a little behind
 * the one before. Gradients travel in links of some MiB, as soon as their last layer has added to them. They are sent from
 * the memory of the sums and received there: a chain takes no bytes besides its table. After the last micro-batch the sums
 * go around once more, to all ranks.
 *
 * Running statistics are not summed, but each micro-batch changes what the one before left. They travel in the same way,
 * in the memory of the weights, during the forward pass.
 *
 * With `fast` every rank sums its own gradients, and the library of the ranks adds these sums in its own order. */
#ifndef REMAT_TRAIN_GRADIENT_CHAIN_H
#define REMAT_TRAIN_GRADIENT_CHAIN_H

#include "comm/comm.h"
#include "train/executor.h"

typedef struct gradient_chain gradient_chain;

typedef struct chain_options {
    remat_communicator *ranks;
    const remat_program *program; /* these two must outlive the chain */
    const graph_sequence *sequence;
    backend_queue *queue;
    /* Those that share the micro-batches: first, first + stride, and so on; `place` is this one's. size 0: all ranks. */
    struct {
        uint64_t first, stride, size, place;
    } group;
    int first_tag;   /* two chains between the same ranks have different tags: this one and those behind it */
    char *gradients; /* the sums */
    const uint64_t *gradient_offsets; /* of parameters among them; NULL: those of the network */
    char *weights;                    /* with the statistics */
    const uint64_t *weight_offsets;   /* of parameters among the weights; NULL: those of the network */
    uint64_t link_bytes;              /* 0: the default */
    bool fast;
    bool statistics_only;                              /* gradients travel in another way */
    bool gradients_only;                               /* and the reverse */
    bool (*has)(const void *user, uint32_t parameter); /* whether a statistic is here; NULL: all are */
    /* Told when a transfer is over; NULL: nobody. Times are nanoseconds of the monotonic clock. */
    void (*observe)(void *user, const char *what, uint64_t number, uint64_t bytes, uint64_t began, uint64_t ended);
    void *user;
} chain_options;

remat_status gradient_chain_create(remat_context *context, const chain_options *options, gradient_chain **made);
void gradient_chain_destroy(gradient_chain *chain);

/* Before a micro-batch. The queue must be idle. `first`: of all micro-batches of the step; `last_of_rank`: of those of
 * this rank. */
remat_status gradient_chain_begin(gradient_chain *chain, bool first, bool last_of_rank);

/* For executor_hooks; `chain` is the gradient_chain. */
remat_status gradient_chain_before(void *chain, size_t position);
remat_status gradient_chain_after(void *chain, size_t position);

/* After the last micro-batch of this rank: returns when the sums and statistics of the whole step are here, and everything
 * that is sent has left. */
remat_status gradient_chain_finish(gradient_chain *chain);

#endif
