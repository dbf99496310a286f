/* What the processor can do at most: multiply-adds on registers, and bytes through memory. */
#include "backend/cpu/cpu_backend.h"

#include "base/alloc.h"

#include <string.h>

/* The best of several short runs: a limit is what the machine can do, not what it does when disturbed. */
static double best_flops(const kernel_table *table, const kernel_run *run)
{
    double best = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t began = cpu_backend_clock();
        double flops = table->multiply_adds(run, 2000000);
        double rate = 1e9 * flops / (double)(cpu_backend_clock() - began);
        if (rate > best)
            best = rate;
    }
    return best;
}

static double best_bytes(const kernel_table *table, const kernel_run *run, size_t count, float *a, float *b)
{
    const kernel_row *kernel = kernel_find(table, OP_accumulate, "ff");
    const op_accumulate args = {.x = {a, REMAT_FP32}, .y = {b, REMAT_FP32}, .count = count};
    double best = 0;
    memset(a, 0, count * sizeof *a);
    memset(b, 0, count * sizeof *b);
    for (int i = 0; i < 5; i++) {
        uint64_t began = cpu_backend_clock();
        kernel->run(run, &args); /* reads two values, writes one */
        double rate = 3e9 * (double)(count * sizeof *a) / (double)(cpu_backend_clock() - began);
        if (rate > best)
            best = rate;
    }
    return best;
}

remat_status cpu_backend_measure_limits(backend *owner, backend_limits *limits)
{
    const kernel_table *table = ((const cpu_backend *)owner)->table;
    const kernel_run run = {(int)owner->threads, NULL};
    const size_t count = (size_t)16 << 20; /* 64 MiB each: larger than the caches */
    float *a = remat_alloc(owner->context, count, sizeof *a), *b = remat_alloc(owner->context, count, sizeof *b);
    remat_status status = a && b ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        *limits =
            (backend_limits){best_flops(table, &run), best_bytes(table, &run, count, a, b),
                             (unsigned)parallel_start(run.threads)}; /* the system may allow fewer than asked for */
    remat_release(owner->context, a, count, sizeof *a);
    remat_release(owner->context, b, count, sizeof *b);
    return status;
}
