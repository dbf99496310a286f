/* Disk stores at the limits of the system: names that are too long, files larger than the process may write, file systems
 * that cannot do everything. */
#include "faulty_disk.h"

#include "store/disk_worker.h"

#include <errno.h>
#include <sys/resource.h>

static void names_that_are_too_long(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'd', sizeof name);
    name[sizeof name - 1] = '\0';
    errno = 0;
    assert_int_equal(disk_io_open_named(name), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    disk_io io = disk_io_system();
    assert_int_equal(io.open(NULL, name), -1);
    assert_int_equal(io.open(NULL, "/dev/null"), -1); /* it is no directory */
    assert_int_equal(io.open(NULL, "/proc"), -1);     /* no file can be made there */
}

static remat_status create_with(fixture *f, const char *directory, disk_slot slot)
{
    disk_store_options options = {.directory = directory, .slots = &slot, .slot_count = 1};
    disk_store *store = (disk_store *)f;
    remat_status status = disk_store_create(f->context, &options, &store);
    if (status != REMAT_OK)
        assert_null(store);
    else
        disk_store_destroy(store);
    return status;
}

static void slots_past_the_end(void **state)
{
    fixture *f = *state;
    const uint64_t limit = UINT64_C(1) << 63;
    expect_status(f, create_with(f, "", (disk_slot){0, 1}), REMAT_INVALID);
    expect_status(f, create_with(f, ".", (disk_slot){limit - 5, 10}), REMAT_INVALID);
    expect_message(f, "block 0 would end past 2^63 bytes");
    expect_status(f, create_with(f, ".", (disk_slot){limit, 0}), REMAT_INVALID);
}

/* Where a process may write small files only, the store is refused when it is made: no signal ends the program later. */
static void files_that_may_not_be_so_large(void **state)
{
    fixture *f = *state;
    char directory[64];
    struct rlimit before, small;
    make_directory(directory);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1000, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    remat_status large = create_with(f, directory, (disk_slot){0, 10000});
    remat_status within = create_with(f, directory, (disk_slot){0, 1000});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(large, REMAT_IO);
    assert_int_equal(within, REMAT_OK);
    remove_directory(directory);
}

static void blocks_that_do_not_exist_are_idle(void **state)
{
    fixture *f = *state;
    char directory[64];
    unsigned char bytes[100] = {1}, first[100], second[100];
    disk_slot slot = {0, sizeof bytes};
    disk_store *store;
    make_directory(directory);
    disk_store_options options = {.directory = directory, .slots = &slot, .slot_count = 1};
    expect_ok(f, disk_store_create(f->context, &options, &store));
    assert_true(disk_store_idle(store, 0));
    assert_true(disk_store_idle(store, 9));
    expect_status(f, disk_store_prefetch(store, 9, first, sizeof first), REMAT_INVALID);
    expect_status(f, disk_store_get(store, 9, first, sizeof first), REMAT_INVALID);
    expect_ok(f, disk_store_put(store, 0, bytes, sizeof bytes));
    expect_ok(f, disk_store_prefetch(store, 0, first, sizeof first));
    expect_ok(f, disk_store_get(store, 0, second, sizeof second)); /* another target than was announced */
    assert_memory_equal(second, bytes, sizeof bytes);
    expect_ok(f, disk_store_drain(store));
    disk_store_destroy(store);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_too_long),
        FIXTURE_TEST(slots_past_the_end),
        FIXTURE_TEST(files_that_may_not_be_so_large),
        FIXTURE_TEST(blocks_that_do_not_exist_are_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
