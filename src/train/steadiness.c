#include "train/steadiness.h"

#include <stdlib.h>
#include <string.h>

static int compare_counts(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t steadiness_median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_counts);
    return values[count / 2];
}

static double median_of(const uint64_t *times, size_t count, uint64_t *room)
{
    memcpy(room, times, count * sizeof *room);
    return (double)steadiness_median(room, count);
}

double steadiness_spread(const uint64_t *times, size_t count, uint64_t *room)
{
    size_t half = count / 2;
    if (half == 0)
        return 0;
    double first = median_of(times, half, room), second = median_of(times + count - half, half, room);
    double all = median_of(times, count, room);
    return all > 0 ? (first > second ? first - second : second - first) / all : 0;
}

bool steadiness_reached(const uint64_t *times, size_t count, uint64_t *room)
{
    uint64_t sum = 0;
    if (count < STEADY_FEWEST)
        return false;
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    if (count >= STEADY_MOST || sum >= STEADY_MOST_TIME)
        return true;
    bool is_asked = count % (1 + count / 16) == 0; /* sorting takes time too */
    return is_asked && sum >= STEADY_LEAST_TIME && steadiness_spread(times, count, room) <= STEADY_SPREAD;
}
