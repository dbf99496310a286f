/* The schedules that a search found: the cheapest of every range of peaks, and the one with the lowest peak. */
#ifndef REMAT_PLAN_GRAPH_HOLD_BINS_H
#define REMAT_PLAN_GRAPH_HOLD_BINS_H

#include "plan/graph/hold_state.h"

typedef struct hold_bin {
    uint64_t peak;
    unsigned __int128 cost;
    uint32_t *from; /* the decisions (hold_state.h); NULL: nothing yet */
    size_t capacity;
} hold_bin;

/* Large graphs have fewer bins, so that these take no more memory than so many decisions. */
enum { MOST_BINS = 2001, LEAST_BINS = 101, MOST_DECISIONS = 1000000 };

typedef struct hold_bins {
    hold_bin bins[MOST_BINS + 1]; /* bins[count] has the lowest peak of all */
    size_t count;
    /* Bins end at round parts of the top, because budgets often do: bin i has peaks up to top * (first + i) / parts. */
    uint64_t top, bottom, parts, first;
} hold_bins;

/* For peaks from `bottom` to `top`, of a graph with so many gaps. All are empty. */
void hold_bins_init(hold_bins *bins, size_t gaps, uint64_t bottom, uint64_t top);
void hold_bins_release(hold_bins *bins, remat_context *context);

/* Takes over the schedule of the state, whatever the bin had. */
remat_status hold_bin_fill(hold_bin *bin, hold_state *state, uint64_t peak);
void hold_bin_release(hold_bin *bin, remat_context *context);

/* Notes the schedule of the state, where it is cheaper than that of its bin, or has a lower peak than all. */
remat_status hold_bins_keep(hold_bins *bins, hold_state *state, uint64_t peak);
/* Takes over what is better in others; the state is one of the same graph. */
remat_status hold_bins_merge(hold_bins *bins, const hold_bins *others, hold_state *state);

/* The cheapest within a limit; NULL where none is. */
const hold_bin *hold_bins_cheapest(const hold_bins *bins, uint64_t limit);
static inline const hold_bin *hold_bins_lowest(const hold_bins *bins)
{
    return &bins->bins[bins->count];
}
/* The highest peak that belongs into a bin. */
static inline uint64_t hold_bins_limit(const hold_bins *bins, size_t bin)
{
    return (uint64_t)((unsigned __int128)bins->top * (bins->first + bin) / bins->parts);
}

#endif
