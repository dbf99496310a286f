#include "machine.h"

#include <inttypes.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- small files of the kernel ---- */

/* The first line of a file, without its end. */
static bool read_line(const char *path, char *text, size_t room)
{
    FILE *stream = fopen(path, "r");
    if (!stream)
        return false;
    bool read = fgets(text, (int)room, stream) != NULL;
    fclose(stream);
    if (read)
        text[strcspn(text, "\n")] = '\0';
    return read;
}

/* What stands behind "KEY:" or "KEY\t:" in a file of such lines. */
static bool read_entry(const char *path, const char *key, char *text, size_t room)
{
    FILE *stream = fopen(path, "r");
    char line[512];
    bool found = false;
    while (stream && !found && fgets(line, sizeof line, stream)) {
        char *colon = strchr(line, ':');
        size_t length = strlen(key);
        if (!colon || strncmp(line, key, length) != 0 ||
            strspn(line + length, " \t") != (size_t)(colon - line) - length)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(text, room, "%.*s", (int)room - 1, colon);
        found = true;
    }
    if (stream)
        fclose(stream);
    return found;
}

/* ---- the processor ---- */

bool machine_processor(char *text, size_t room)
{
    return read_entry("/proc/cpuinfo", "model name", text, room);
}

void machine_features(char *text, size_t room)
{
    text[0] = '\0';
    (void)room;
#if defined(__x86_64__)
#define FEATURE(name)                 \
    if (__builtin_cpu_supports(name)) \
    strncat(text, text[0] ? " " name : name, room - strlen(text) - 1)
    FEATURE("sse4.2");
    FEATURE("avx");
    FEATURE("avx2");
    FEATURE("fma");
    FEATURE("avx512f");
    FEATURE("avx512bw");
    FEATURE("avx512dq");
    FEATURE("avx512vl");
#undef FEATURE
#endif
}

long machine_cores_online(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

long machine_cores_usable(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : machine_cores_online();
}

/* ---- control groups ---- */

/* The folder of this process's group of version 2, or "" where it is not known. */
static void group_folder(char *text, size_t room)
{
    char line[256];
    text[0] = '\0';
    if (read_entry("/proc/self/cgroup", "0:", line, sizeof line))
        snprintf(text, room, "/sys/fs/cgroup%s", line);
}

/* Calls `look` with FILE of the group's folder and of every folder above it. */
static void each_group(const char *file, void (*look)(const char *text, void *user), void *user)
{
    char folder[300], path[400], text[128];
    group_folder(folder, sizeof folder);
    if (!*folder)
        snprintf(folder, sizeof folder, "/sys/fs/cgroup");
    for (;;) {
        snprintf(path, sizeof path, "%s/%s", folder, file);
        if (read_line(path, text, sizeof text))
            look(text, user);
        char *slash = strrchr(folder, '/');
        if (!slash || strcmp(folder, "/sys/fs/cgroup") == 0 || strlen(folder) <= strlen("/sys/fs/cgroup"))
            return;
        *slash = '\0';
    }
}

static void least_bytes(const char *text, void *user)
{
    uint64_t *least = user, bytes;
    if (sscanf(text, "%" SCNu64, &bytes) == 1 && bytes < *least)
        *least = bytes;
}

static void least_share(const char *text, void *user)
{
    double *least = user, quota, period;
    if (sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 && (*least == 0 || quota / period < *least))
        *least = quota / period;
}

double machine_core_limit(void)
{
    double least = 0;
    each_group("cpu.max", least_share, &least);
    return least;
}

/* ---- memory ---- */

static uint64_t memory_entry(const char *key)
{
    char text[64];
    return read_entry("/proc/meminfo", key, text, sizeof text) ? strtoull(text, NULL, 10) * 1024 : 0;
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return MACHINE_NO_LIMIT;
    return limit.rlim_cur;
}

void machine_read_memory(machine_memory *memory)
{
    char text[64];
    *memory = (machine_memory){.total = memory_entry("MemTotal"),
                               .available = memory_entry("MemAvailable"),
                               .swap_total = memory_entry("SwapTotal"),
                               .group = MACHINE_NO_LIMIT,
                               .address_space = limit_of(RLIMIT_AS),
                               .data = limit_of(RLIMIT_DATA),
                               .locked = limit_of(RLIMIT_MEMLOCK),
                               .stack = limit_of(RLIMIT_STACK),
                               .page = (uint64_t)sysconf(_SC_PAGESIZE)};
    memory->swap_used = memory->swap_total - memory_entry("SwapFree");
    each_group("memory.max", least_bytes, &memory->group);
    if (memory->group == MACHINE_NO_LIMIT &&
        read_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", text, sizeof text))
        least_bytes(text, &memory->group);
    if (memory->group >= memory->total && memory->total > 0) /* version 1 writes a huge number for none */
        memory->group = MACHINE_NO_LIMIT;
}

bool machine_huge_pages(char *text, size_t room)
{
    char line[128], size[64];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        return false;
    char *begin = strchr(line, '['), *end = begin ? strchr(begin, ']') : NULL;
    if (!end)
        return false;
    *end = '\0';
    bool sized = read_entry("/proc/meminfo", "Hugepagesize", size, sizeof size);
    snprintf(text, room, "transparent: %s%s%s", begin + 1, sized ? ", of " : "", sized ? size : "");
    return true;
}

/* ---- libraries ---- */

typedef struct library_list {
    char *text;
    size_t room;
} library_list;

static int add_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    library_list *list = user;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (!slash)
        return 0;
    if (list->text[0])
        strncat(list->text, " ", list->room - strlen(list->text) - 1);
    strncat(list->text, slash + 1, list->room - strlen(list->text) - 1);
    return 0;
}

bool machine_libraries(char *text, size_t room)
{
    library_list list = {text, room};
    text[0] = '\0';
    dl_iterate_phdr(add_library, &list);
    return text[0] != '\0';
}
