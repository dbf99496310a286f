/* From marks on layers to steps: what a strategy's plan means as a schedule. */
#ifndef REMAT_GRAPH_BLOCK_SCHEDULE_H
#define REMAT_GRAPH_BLOCK_SCHEDULE_H

#include <remat/schedule.h>

/* One mark a layer. Adjacent recomputed layers form one block, unless the mark says that a new one starts. */
enum { MARK_KEEP, MARK_RECOMPUTE, MARK_RECOMPUTE_NEW_BLOCK };

/* Walks the schedule of the marks.
 *
 *   layers    0      1   2   3      4        kept: 0 and 4; block: 1..3
 *   forward   s0     x2  x3  x4     s4       a block keeps its input (inside s0) and its output x4
 *   loss
 *   backward                        b4       x4 is dropped: nothing reads it before layer 3 runs again
 *   again            s1  s2  s3              with saving
 *   backward  b0     b1  b2  b3 */
remat_status remat_block_schedule_walk(const remat_profile *chain, const uint8_t *marks, remat_step_fn visit,
                                       void *user);

#endif
