#include "memory_limit.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* What /proc says of this process. */
typedef struct process_status {
    uint64_t data_bytes; /* everything private that it may write, touched or not */
    unsigned threads;
    bool traced; /* by a debugger, which may have written breakpoints into the code */
} process_status;

static bool read_status(process_status *found)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    unsigned tracer = 0;
    bool has_data = false, has_threads = false;
    while (status && fgets(line, sizeof line, status)) {
        has_data = has_data || sscanf(line, "VmData: %llu kB", &kib) == 1;
        has_threads = has_threads || sscanf(line, "Threads: %u", &found->threads) == 1;
        sscanf(line, "TracerPid: %u", &tracer);
    }
    if (status)
        fclose(status);
    found->data_bytes = kib * 1024;
    found->traced = tracer != 0;
    return has_data && has_threads;
}

/* The pages of a program or library that nobody writes: code and constants. They are read from the file again when they are
 * needed. What the loader relocates is in segments that may be written. The kernel's own object has no path, and the program an empty one. */
static int forget_code(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    (void)user;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (object->dlpi_name[0] && !strchr(object->dlpi_name, '/'))
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t first = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1),
                        end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            madvise((void *)first, end - first, MADV_DONTNEED);
    }
    return 0;
}

void memory_trim(void)
{
    process_status now;
    malloc_trim(0);
    if (read_status(&now) && !now.traced)
        dl_iterate_phdr(forget_code, NULL);
}

bool memory_limit_set(uint64_t bytes, unsigned threads, uint64_t *most)
{
    process_status now;
    struct rlimit limit;
    memory_trim();
    if (!read_status(&now) || getrlimit(RLIMIT_DATA, &limit) != 0) {
        fprintf(stderr, "remat: --memory-limit hard needs /proc/self/status and RLIMIT_DATA, as Linux has them\n");
        return false;
    }
    const uint64_t missing = threads > now.threads ? threads - now.threads : 0;
    *most = now.data_bytes + bytes + MEMORY_LIMIT_FILES + missing * MEMORY_LIMIT_THREAD;
    limit.rlim_cur = *most < limit.rlim_max ? (rlim_t)*most : limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) == 0)
        return true;
    fprintf(stderr, "remat: the memory of the process cannot be limited: %s\n", strerror(errno));
    return false;
}
