#include "machine.h"

#include <inttypes.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

const char *machine_root = "";

/* ---- small files of the kernel ---- */

static FILE *open_file(const char *path)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", machine_root, path);
    return fopen(whole, "re");
}

/* The first line of a file, without its end. */
static bool read_line(const char *path, char *text, size_t room)
{
    FILE *stream = open_file(path);
    if (!stream)
        return false;
    bool read = fgets(text, (int)room, stream) != NULL;
    fclose(stream);
    if (read)
        text[strcspn(text, "\n")] = '\0';
    return read;
}

/* The text after "KEY:" or "KEY\t:" in a file of such lines. */
static bool read_entry(const char *path, const char *key, char *text, size_t room)
{
    FILE *stream = open_file(path);
    if (!stream)
        return false;
    const size_t length = strlen(key);
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, stream)) {
        if (strncmp(line, key, length) != 0)
            continue;
        char *at = line + length + strspn(line + length, " \t");
        if (*at != ':')
            continue;
        at += 1 + strspn(at + 1, " \t");
        snprintf(text, room, "%.*s", (int)strcspn(at, "\n"), at);
        found = true;
    }
    fclose(stream);
    return found;
}

/* Adds a word to a list with spaces between. */
static void add_word(char *text, size_t room, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used ? " " : "", word);
}

/* ---- the processor ---- */

bool machine_processor(char *text, size_t room)
{
    return read_entry("/proc/cpuinfo", "model name", text, room);
}

#if defined(__x86_64__)
/* Bits that not every compiler can ask for by name: of leaf 7, this sub-leaf and register. */
static int processor_has(unsigned sub_leaf, int number, unsigned bits)
{
    unsigned registers[4];
    return __get_cpuid_count(7, sub_leaf, &registers[0], &registers[1], &registers[2], &registers[3]) &&
           (registers[number] & bits) == bits;
}
#endif

void machine_features(char *text, size_t room)
{
    text[0] = '\0';
#if defined(__x86_64__)
    const struct {
        const char *name;
        int present;
    } features[] = {
#define FEATURE(name) {name, __builtin_cpu_supports(name)}
        FEATURE("sse4.2"),
        FEATURE("avx"),
        FEATURE("avx2"),
        FEATURE("fma"),
        FEATURE("avx512f"),
        FEATURE("avx512bw"),
        FEATURE("avx512dq"),
        FEATURE("avx512vl"),
#undef FEATURE
        {"avx512bf16", processor_has(1, 0, 1u << 5)},
        {"amx-bf16", processor_has(0, 3, 1u << 22)},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (features[i].present)
            add_word(text, room, features[i].name);
#else
    (void)room;
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

/* The path of this process's group in the tree of `controller`, or "" where it is not known. Version 2 has one tree for all
 * controllers, whose name is "". The lines are NUMBER:CONTROLLERS:PATH. */
static void find_group(const char *controller, char *path, size_t room)
{
    FILE *stream = open_file("/proc/self/cgroup");
    char line[512];
    path[0] = '\0';
    while (stream && fgets(line, sizeof line, stream)) {
        char *names = strchr(line, ':'), *end = names ? strchr(names + 1, ':') : NULL;
        if (!end || (size_t)(end - names - 1) != strlen(controller) ||
            strncmp(names + 1, controller, strlen(controller)) != 0)
            continue;
        snprintf(path, room, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
        break;
    }
    if (stream)
        fclose(stream);
}

/* Calls `look` with the first line of FILE of the group and of every group above it. */
static void each_group(const char *controller, const char *file, void (*look)(const char *text, void *user), void *user)
{
    char group[512], path[1024], text[128];
    find_group(controller, group, sizeof group);
    for (char *slash = group; slash;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/%s", controller, group, file);
        if (read_line(path, text, sizeof text))
            look(text, user);
        slash = strrchr(group, '/');
        if (slash)
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
    double *least = user;
    uint64_t quota, period;
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) != 2 || period == 0)
        return;
    double share = (double)quota / (double)period;
    if (*least == 0 || share < *least)
        *least = share;
}

double machine_core_limit(void)
{
    double least = 0;
    each_group("", "cpu.max", least_share, &least);
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
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit((__rlimit_resource_t)resource, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? MACHINE_NO_LIMIT : limit.rlim_cur;
}

void machine_read_memory(machine_memory *memory)
{
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
    each_group("", "memory.max", least_bytes, &memory->group);
    each_group("memory", "memory.limit_in_bytes", least_bytes, &memory->group); /* version 1 */
    if (memory->group >= memory->total && memory->total > 0) /* version 1 writes a huge number for none */
        memory->group = MACHINE_NO_LIMIT;
}

uint64_t machine_usable(const machine_memory *memory, const char **what)
{
    const struct {
        uint64_t bytes;
        const char *what;
    } limits[] = {
        {memory->total ? memory->total : MACHINE_NO_LIMIT, "the memory of this machine"},
        {memory->group, "the memory limit of this control group"},
        {memory->data, "the limit of data of this process (ulimit -d)"},
        {memory->address_space, "the limit of memory of this process (ulimit -v)"},
    };
    uint64_t least = MACHINE_NO_LIMIT;
    *what = limits[0].what;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].bytes < least) {
            least = limits[i].bytes;
            *what = limits[i].what;
        }
    return least;
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
    if (slash)
        add_word(list->text, list->room, slash + 1);
    return 0;
}

bool machine_libraries(char *text, size_t room)
{
    library_list list = {text, room};
    text[0] = '\0';
    dl_iterate_phdr(add_library, &list);
    return text[0] != '\0';
}
