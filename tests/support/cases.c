#include "support/cases.h"

#include <time.h>

uint64_t test_seed(void)
{
    const char *given = getenv("REMAT_SEED");
    if (!given)
        return 1;
    if (strcmp(given, "random") != 0)
        return strtoull(given, NULL, 10);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
}

/* splitmix64 */
uint64_t test_random_next(test_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t test_random_below(test_random *random, uint64_t bound)
{
    return test_random_next(random) % bound;
}
