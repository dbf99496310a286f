#include <omp.h>
#include <string.h>
#include <time.h>

#include <remat/train.h>

#include "base/alloc.h"
#include "backend/cpu/kernels.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best of several short runs: a limit is what the machine can do, not what it does when disturbed. */
static double best_flops(const kernel_table *kernels, const kernel_run *run)
{
    double best = 0;
    for (int i = 0; i < 6; i++) {
        double began = seconds_now(), flops = kernels->exercise(run, 2000000);
        double rate = flops / (seconds_now() - began);
        if (rate > best)
            best = rate;
    }
    return best;
}

static double best_bytes(const kernel_table *kernels, const kernel_run *run, size_t count, real *a, real *b)
{
    double best = 0;
    memset(a, 0, count * sizeof *a);
    memset(b, 0, count * sizeof *b);
    for (int i = 0; i < 5; i++) {
        double began = seconds_now();
        kernels->accumulate(run, count, a, b); /* reads two, writes one */
        double rate = 3.0 * (double)(count * sizeof *a) / (seconds_now() - began);
        if (rate > best)
            best = rate;
    }
    return best;
}

/* The system may allow fewer than are asked for. */
static unsigned threads_that_run(const kernel_run *run)
{
    unsigned threads = 0;
#pragma omp parallel num_threads(run->threads) reduction(+ : threads)
    threads++;
    return threads;
}

remat_status remat_measure_limits(remat_context *context, unsigned threads, remat_machine_limits *limits)
{
    const kernel_table *kernels = kernels_fast();
    kernel_run run = {threads ? (int)threads : omp_get_num_procs(), NULL};
    const size_t count = (size_t)16 << 20; /* 64 MiB each: larger than the caches */
    real *a = remat_alloc(context, count, sizeof *a), *b = remat_alloc(context, count, sizeof *b);
    remat_status status = a && b ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        *limits = (remat_machine_limits){best_flops(kernels, &run), best_bytes(kernels, &run, count, a, b),
                                         threads_that_run(&run), kernels->name};
    remat_release(context, a, count, sizeof *a);
    remat_release(context, b, count, sizeof *b);
    return status;
}
