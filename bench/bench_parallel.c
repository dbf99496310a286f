/* What a loop over several threads costs beside its work: the time of an empty one, in microseconds. The least of several
 * tries; `gap` is the time between two loops, in which a waiting thread may fall asleep.
 *
 *   bench_parallel [THREADS]      default: as many as a training would use */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/parallel.h"

static void do_nothing(const void *args, parallel_range range)
{
    (void)args;
    (void)range;
}

static void wait_for(double seconds)
{
    double end = measure_now() + seconds;
    while (seconds > 0 && measure_now() < end)
        ;
}

static double measure_loop(int threads, double gap)
{
    enum { TRIES = 15, LOOPS = 500 };
    double least = 1;
    for (int i = 0; i < TRIES; i++) {
        double began = measure_now();
        for (int k = 0; k < LOOPS; k++) {
            parallel_static(threads, (size_t)threads, do_nothing, NULL);
            wait_for(gap);
        }
        double each = (measure_now() - began) / LOOPS - gap;
        least = each < least ? each : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    static const double gaps[] = {0, 5e-6, 20e-6, 50e-6, 200e-6};
    enum { GAPS = sizeof gaps / sizeof *gaps };
    int most = argc > 1 ? atoi(argv[1]) : parallel_default_threads();
    printf("threads");
    for (int g = 0; g < GAPS; g++)
        printf("  gap %3.0f us", 1e6 * gaps[g]);
    printf("\n");
    for (int threads = 1; threads <= most; threads = threads < most && 2 * threads > most ? most : 2 * threads) {
        printf("%7d", threads);
        for (int g = 0; g < GAPS; g++)
            printf("  %10.2f", 1e6 * measure_loop(threads, gaps[g]));
        printf("\n");
    }
    return 0;
}
