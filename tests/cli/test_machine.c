/* What `remat doctor` reads from the kernel's files: made-up trees of /proc and /sys. */
#include "machine.h"

#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cases.h"

/* ---- the tree ---- */

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about, (void)type, (void)walk;
    return remove(path);
}

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/remat-machine-XXXXXX");
    machine_root = root;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    machine_root = "";
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
    char whole[512];
    size_t length = (size_t)snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_in_range(length, 1, sizeof whole - 1);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static machine_memory memory_now(void)
{
    machine_memory memory;
    machine_read_memory(&memory);
    return memory;
}

/* ---- tests ---- */

static void nothing_is_there(void **state)
{
    (void)state;
    char text[64];
    machine_memory memory = memory_now();
    assert_false(machine_processor(text, sizeof text));
    assert_false(machine_huge_pages(text, sizeof text));
    assert_true(machine_core_limit() == 0);
    assert_int_equal(memory.total, 0);
    assert_int_equal(memory.swap_used, 0);
    assert_true(memory.group == MACHINE_NO_LIMIT);
    assert_int_equal(memory.page, sysconf(_SC_PAGESIZE)); /* not from a file */
}

static void names_of_processors(void **state)
{
    (void)state;
    char text[64], small[6];
    put("/proc/cpuinfo",
        "processor\t: 0\nmodel name extra\t: no\nmodel\t\t: 7\nmodel name\t: Fast One\nmodel name\t: b\n");
    assert_true(machine_processor(text, sizeof text));
    assert_string_equal(text, "Fast One");
    assert_true(machine_processor(small, sizeof small));
    assert_string_equal(small, "Fast ");
    put("/proc/cpuinfo", "model name\t: cut"); /* a last line without an end */
    assert_true(machine_processor(text, sizeof text));
    assert_string_equal(text, "cut");
    put("/proc/cpuinfo", "model name\nmodel: 5\n");
    assert_false(machine_processor(text, sizeof text));
}

static void sizes_of_memory(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:   600 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
    machine_memory memory = memory_now();
    assert_int_equal(memory.total, 1000 * 1024);
    assert_int_equal(memory.available, 600 * 1024);
    assert_int_equal(memory.swap_total, 50 * 1024);
    assert_int_equal(memory.swap_used, 30 * 1024);
}

/* The least limit counts, of the group itself or of one above it. */
static void groups_of_version_2(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:  1000 kB\n");
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    assert_true(memory_now().group == MACHINE_NO_LIMIT);
    put("/sys/fs/cgroup/outer/memory.max", "70000\n");
    assert_int_equal(memory_now().group, 70000);
    put("/sys/fs/cgroup/outer/inner/memory.max", "80000\n");
    assert_int_equal(memory_now().group, 70000);
    put("/sys/fs/cgroup/outer/inner/memory.max", "60000\n");
    assert_int_equal(memory_now().group, 60000);
    put("/sys/fs/cgroup/memory.max", "50000\n"); /* of the top, where a container sees its own group */
    assert_int_equal(memory_now().group, 50000);
    put("/sys/fs/cgroup/elsewhere/memory.max", "10\n");
    put("/sys/fs/cgroup/outer/inner/below/memory.max", "10\n");
    assert_int_equal(memory_now().group, 50000);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(memory_now().group, 50000);
    put("/sys/fs/cgroup/memory.max", ""); /* a file that says nothing is no limit */
    assert_true(memory_now().group == MACHINE_NO_LIMIT);
}

/* What a process may have is the least of what limits it. */
static void usable_memory(void **state)
{
    (void)state;
    const char *what;
    machine_memory memory = {.group = MACHINE_NO_LIMIT, .data = MACHINE_NO_LIMIT, .address_space = MACHINE_NO_LIMIT};
    assert_true(machine_usable(&memory, &what) == MACHINE_NO_LIMIT);
    memory.total = 1000;
    assert_int_equal(machine_usable(&memory, &what), 1000);
    assert_non_null(strstr(what, "machine"));
    memory.group = 900;
    assert_int_equal(machine_usable(&memory, &what), 900);
    assert_non_null(strstr(what, "control group"));
    memory.data = 800;
    assert_int_equal(machine_usable(&memory, &what), 800);
    memory.address_space = 700;
    assert_int_equal(machine_usable(&memory, &what), 700);
    assert_non_null(strstr(what, "ulimit -v"));
}

static void groups_of_version_1(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:  1000 kB\n");
    put("/proc/self/cgroup", "nonsense\n5:memories:/wrong\n4:memory:/job\n3:cpu:/wrong\n0::/\n");
    put("/sys/fs/cgroup/memory/wrong/memory.limit_in_bytes", "10\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* which means none */
    assert_true(memory_now().group == MACHINE_NO_LIMIT);
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "90000\n");
    assert_int_equal(memory_now().group, 90000);
    put("/proc/self/cgroup", "5:memory\n"); /* no path: the top */
    assert_true(memory_now().group == MACHINE_NO_LIMIT);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1024000\n"); /* all the memory */
    assert_true(memory_now().group == MACHINE_NO_LIMIT);
}

static void shares_of_cores(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/cpu.max", "max 100000\n");
    assert_true(machine_core_limit() == 0);
    put("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
    assert_true(machine_core_limit() == 1.5);
    put("/sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
    assert_true(machine_core_limit() == 0.5);
    put("/sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
    assert_true(machine_core_limit() == 1.5);
    put("/sys/fs/cgroup/outer/cpu.max", "150000 0\n"); /* no period */
    assert_true(machine_core_limit() == 4);
}

static void huge_pages(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "always madvise never\n", "always [madvise\n"};
    char text[64];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put("/sys/kernel/mm/transparent_hugepage/enabled", wrong[i]);
        assert_false(machine_huge_pages(text, sizeof text));
    }
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    assert_true(machine_huge_pages(text, sizeof text));
    assert_string_equal(text, "transparent: madvise");
    put("/proc/meminfo", "Hugepagesize:       2048 kB\n");
    assert_true(machine_huge_pages(text, sizeof text));
    assert_string_equal(text, "transparent: madvise, of 2048 kB");
}

static void limits_of_the_process(void **state)
{
    (void)state;
    struct rlimit before, set;
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    set = before;
    set.rlim_cur = 4 << 20;
    assert_int_equal(setrlimit(RLIMIT_STACK, &set), 0);
    assert_int_equal(memory_now().stack, 4 << 20);
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    long usable = machine_cores_usable();
    assert_true(usable >= 1 && usable <= sysconf(_SC_NPROCESSORS_CONF));
    assert_true(machine_cores_online() >= 1);
}

/* Names that do not fit are cut. */
static void lists_of_names(void **state)
{
    (void)state;
    char text[512], small[4];
    assert_true(machine_libraries(text, sizeof text));
    assert_non_null(strstr(text, "libc."));
    assert_null(strchr(text, '/'));
    assert_true(machine_libraries(small, sizeof small));
    assert_int_equal(strlen(small), 3);
    machine_features(text, sizeof text);
    machine_features(small, sizeof small);
    assert_memory_equal(text, small, strlen(small));
}

#define TREE_TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(nothing_is_there),    TREE_TEST(names_of_processors),   TREE_TEST(sizes_of_memory),
        TREE_TEST(groups_of_version_2), TREE_TEST(usable_memory),         TREE_TEST(shares_of_cores),
        TREE_TEST(groups_of_version_2), TREE_TEST(groups_of_version_1),   TREE_TEST(shares_of_cores),
        TREE_TEST(huge_pages),          TREE_TEST(limits_of_the_process), TREE_TEST(lists_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
