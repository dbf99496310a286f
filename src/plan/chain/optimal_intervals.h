/* Which intervals of the chain the recursion visits, and where each may be cut.
 *
 * Near its start an interval is cut at every place, further away only at ever better ones. So the number of intervals grows
 * with n log n, not with its square. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_INTERVALS_H
#define REMAT_PLAN_CHAIN_OPTIMAL_INTERVALS_H

#include "plan/chain/optimal_model.h"

#define NO_INTERVAL UINT32_MAX

typedef struct optimal_interval {
    uint32_t start, last;
} optimal_interval;

typedef struct optimal_intervals {
    const optimal_model *model;
    size_t near;            /* cuts at most this far from the start are all tried */
    uint32_t levels;        /* ranks in use */
    uint32_t *next_ranked;  /* levels * (n + 2): the first place at or behind j with at least this rank */
    uint64_t *bits;         /* which (start, length) are visited */
    uint32_t *before;       /* how many are visited before each word of bits */
    size_t *row;            /* n + 1: first word of each start */
    size_t words;           /* of bits, and of before */
    optimal_interval *list; /* the visited intervals */
    uint32_t *by_length;    /* their positions in the list, short ones first */
    size_t count, capacity;
    size_t cut_count; /* cuts of all visited intervals together: the work to do */
} optimal_intervals;

remat_status optimal_intervals_build(remat_context *context, const optimal_model *model, size_t near,
                                     optimal_intervals *intervals);
void optimal_intervals_free(remat_context *context, optimal_intervals *intervals);

/* Fills cuts (room for n) with the places j, start < j <= last, where the interval may be cut, in order. */
size_t optimal_intervals_cuts(const optimal_intervals *intervals, optimal_interval interval, uint32_t *cuts);

/* Number of the interval that looks like start..last, or NO_INTERVAL. */
uint32_t optimal_intervals_find(const optimal_intervals *intervals, size_t start, size_t last);

#endif
