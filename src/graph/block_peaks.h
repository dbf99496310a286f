/* The peak of a block schedule while its marks change one at a time, in O(log N) a change.
 *
 * The greedy of `budget` has to know the peak of each of its N prefixes; replaying N schedules of N steps would take
 * hours for 10^5 layers. This is a segment tree of summaries of the very sums that the simulator makes; the plan that
 * comes out is replayed by the simulator all the same, and the two have to agree. */
#ifndef REMAT_GRAPH_BLOCK_PEAKS_H
#define REMAT_GRAPH_BLOCK_PEAKS_H

#include "graph/chain.h"

typedef struct block_peaks block_peaks;

/* All layers kept at first. */
remat_status block_peaks_create(remat_context *context, const remat_profile *chain, block_peaks **peaks);
void block_peaks_destroy(block_peaks *peaks);

/* Marks a layer as recomputed; adjacent recomputed layers are one block. */
void block_peaks_recompute(block_peaks *peaks, size_t layer);

/* The peak of the schedule as marked. */
uint64_t block_peaks_peak(const block_peaks *peaks);

#endif
