#include "memory_limit.h"

#include <errno.h>
#include <malloc.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* What the system counts as data of this process: everything private that it may write, touched or not. */
static bool read_data(uint64_t *bytes)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    bool found = false;
    while (status && !found && fgets(line, sizeof line, status))
        found = sscanf(line, "VmData: %llu kB", &kib) == 1;
    if (status)
        fclose(status);
    *bytes = kib * 1024;
    return found;
}

static void start_threads(unsigned threads)
{
    unsigned started = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp atomic
        started++;
    }
    (void)started;
}

bool memory_limit_set(uint64_t bytes, unsigned threads, uint64_t *most)
{
    uint64_t now;
    struct rlimit limit;
    start_threads(threads);
    malloc_trim(0); /* what planning took and gave back */
    if (!read_data(&now) || getrlimit(RLIMIT_DATA, &limit) != 0) {
        fprintf(stderr, "remat: --memory-limit hard needs /proc/self/status and RLIMIT_DATA, as Linux has them\n");
        return false;
    }
    *most = now + bytes + MEMORY_LIMIT_FILES;
    limit.rlim_cur = *most < limit.rlim_max ? (rlim_t)*most : limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) == 0)
        return true;
    fprintf(stderr, "remat: the memory of the process cannot be limited: %s\n", strerror(errno));
    return false;
}
