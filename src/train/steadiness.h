/* How long to measure. Short steps are slow at first: the processor's clock rises, caches fill, threads wake up. A few of
 * them may all be fast or all be slow. So steps are measured until the first and the second half of them agree. */
#ifndef REMAT_TRAIN_STEADINESS_H
#define REMAT_TRAIN_STEADINESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps take nanoseconds. At least so many steps and so much time, and at most so much time beyond the fewest steps. */
enum { STEADY_FEWEST = 5, STEADY_MOST = 20000 };
#define STEADY_LEAST_TIME ((uint64_t)300000000)
#define STEADY_MOST_TIME  ((uint64_t)3000000000)
#define STEADY_SPREAD     0.02

/* By how much the medians of the first and the second half of the times differ, as a share of the median of all; 0 for fewer
 * than two. `room` is for `count` numbers. */
double steadiness_spread(const uint64_t *times, size_t count, uint64_t *room);

/* Whether these steps are enough. */
bool steadiness_reached(const uint64_t *times, size_t count, uint64_t *room);

/* The middle one of the values, which get sorted; count is at least 1. */
uint64_t steadiness_median(uint64_t *values, size_t count);

#endif
