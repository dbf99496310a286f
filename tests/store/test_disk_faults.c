#include "faulty_disk.h"

#include <sys/resource.h>

#define BLOCKS      4
#define BLOCK_BYTES 3000
static const disk_slot slots[BLOCKS] = {
    {0, BLOCK_BYTES}, {3000, BLOCK_BYTES}, {6000, BLOCK_BYTES}, {9000, BLOCK_BYTES}};

static remat_status make_store(fixture *f, const char *directory, const disk_io *io, disk_store **store)
{
    disk_store_options options = {directory, slots, BLOCKS, 2, io};
    return disk_store_create(f->context, &options, store);
}

/* Writes all blocks and reads them back; what comes back without an error must be right. */
static remat_status run(fixture *f, disk_store *store, uint64_t version)
{
    static unsigned char source[BLOCKS][BLOCK_BYTES], target[BLOCKS][BLOCK_BYTES], wanted[BLOCK_BYTES];
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < BLOCKS && status == REMAT_OK; i++) {
        fill_block(source[i], BLOCK_BYTES, i, version);
        status = disk_store_put(store, i, source[i], BLOCK_BYTES);
    }
    memset(target, 0, sizeof target);
    for (size_t i = BLOCKS; i-- > 0 && status == REMAT_OK;) {
        if (i > 0)
            status = disk_store_prefetch(store, i - 1, target[i - 1], BLOCK_BYTES);
        remat_status got = disk_store_get(store, i, target[i], BLOCK_BYTES);
        fill_block(wanted, BLOCK_BYTES, i, version);
        if (got == REMAT_OK)
            assert_memory_equal(target[i], wanted, BLOCK_BYTES);
        else
            status = got;
    }
    /* However it went, after this the buffers are ours, and what failed stays failed. */
    expect_status(f, disk_store_drain(store), status);
    return status;
}

/* One fault at every call in turn. A failure is clear and lasts until the reset; then all is well again. */
static void inject(fixture *f, const char *directory, bool in_write, fault_kind kind, int error, const char *message)
{
    for (uint64_t at = 1; at <= BLOCKS; at++) {
        faulty_disk disk = {.error = error, .bit = at * 777};
        faulty_call *call = in_write ? &disk.write : &disk.read;
        *call = (faulty_call){.kind = kind, .at = at};
        disk_io io = faulty_disk_io(&disk);
        disk_store *store;
        expect_ok(f, make_store(f, directory, &io, &store));
        expect_status(f, run(f, store, 1), message ? REMAT_IO : REMAT_OK);
        if (message) {
            expect_message(f, message);
            expect_message(f, directory);
            expect_message(f, "block ");
            expect_message(f, "offset ");
            assert_string_equal(remat_context_error(f->context)->file, directory);
            unsigned char bytes[BLOCK_BYTES];
            expect_status(f, disk_store_put(store, 0, bytes, 1), REMAT_IO);
            expect_message(f, message);
            disk_store_reset(store);
            call->kind = FAULT_NONE;
            expect_ok(f, run(f, store, 2));
        }
        disk_store_destroy(store);
        assert_int_equal(disk.opened, 0);
    }
}

static void every_fault_at_every_call(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    inject(f, directory, true, FAULT_ERROR, ENOSPC, "No space left on device");
    inject(f, directory, true, FAULT_ERROR, EIO, "writing failed");
    inject(f, directory, true, FAULT_NOTHING, 0, "writing failed");
    inject(f, directory, true, FAULT_TOO_MUCH, 0, "writing failed");
    inject(f, directory, true, FAULT_SHORT, 0, NULL);
    inject(f, directory, true, FAULT_INTERRUPT, 0, NULL);
    inject(f, directory, false, FAULT_ERROR, EIO, "reading failed: Input/output error");
    inject(f, directory, false, FAULT_NOTHING, 0, "cut off underneath");
    inject(f, directory, false, FAULT_TOO_MUCH, 0, "reading failed");
    inject(f, directory, false, FAULT_FLIP, 0, "not what was written");
    inject(f, directory, false, FAULT_SHORT, 0, NULL);
    inject(f, directory, false, FAULT_INTERRUPT, 0, NULL);
    remove_directory(directory);
}

static void a_disk_that_is_full_in_the_middle_of_a_block(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    faulty_disk disk = {.error = ENOSPC, .write = {.kind = FAULT_FILLS_UP, .at = 1}};
    disk_io io = faulty_disk_io(&disk);
    disk_store *store;
    unsigned char bytes[BLOCK_BYTES];
    fill_block(bytes, sizeof bytes, 0, 0);
    expect_ok(f, make_store(f, directory, &io, &store));
    expect_ok(f, disk_store_put(store, 1, bytes, BLOCK_BYTES));
    expect_status(f, disk_store_wait(store, 1), REMAT_IO);
    expect_message(f, "block 1 of 3000 bytes, at offset 4500 of the file: writing failed: No space left on device");
    disk_store_destroy(store);
    remove_directory(directory);
}

static void a_full_disk_shows_at_once(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    disk_store *store;
    faulty_disk disk = {.error = ENOSPC, .reserve = {.kind = FAULT_ERROR}};
    disk_io io = faulty_disk_io(&disk);
    expect_status(f, make_store(f, directory, &io, &store), REMAT_IO);
    assert_null(store);
    expect_message(f, "no room for");
    expect_message(f, "No space left on device");
    assert_int_equal(disk.opened, 0);
    disk = (faulty_disk){.error = EACCES, .open = {.kind = FAULT_ERROR}};
    expect_status(f, make_store(f, directory, &io, &store), REMAT_IO);
    expect_message(f, "Permission denied");
    /* The real thing: more than any disk has, and more than the program may write. */
    disk_slot huge = {0, (uint64_t)1 << 60};
    disk_store_options options = {.directory = directory, .slots = &huge, .slot_count = 1};
    expect_status(f, disk_store_create(f->context, &options, &store), REMAT_IO);
    struct rlimit before, less;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = 5000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    remat_status status = make_store(f, directory, NULL, &store);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_status(f, status, REMAT_IO);
    expect_message(f, "File too large");
    remove_directory(directory);
}

/* Somebody else gets at the file between writing and reading. */
static void a_file_changed_underneath(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    for (int how = 0; how < 5; how++) {
        faulty_disk disk = {0};
        disk_io io = faulty_disk_io(&disk);
        disk_store *store;
        expect_ok(f, make_store(f, directory, &io, &store));
        unsigned char bytes[BLOCK_BYTES], back[BLOCK_BYTES], other[BLOCK_BYTES];
        fill_block(bytes, sizeof bytes, 1, 0);
        fill_block(other, sizeof other, 2, 0);
        expect_ok(f, disk_store_put(store, 1, bytes, BLOCK_BYTES));
        expect_ok(f, disk_store_put(store, 2, other, BLOCK_BYTES));
        expect_ok(f, disk_store_drain(store));
        switch (how) {
        case 0: assert_int_equal(ftruncate(disk.file, 0), 0); break;
        case 1: assert_int_equal(ftruncate(disk.file, 3000 + BLOCK_BYTES - 1), 0); break;
        case 2: /* cut off, and made as long again: zeros */
            assert_int_equal(ftruncate(disk.file, 3000 + 10), 0);
            assert_int_equal(ftruncate(disk.file, 12000), 0);
            break;
        case 3: assert_int_equal(pwrite(disk.file, "x", 1, 3000 + BLOCK_BYTES - 1), 1); break;
        case 4: assert_int_equal(pwrite(disk.file, other, BLOCK_BYTES, 3000), BLOCK_BYTES); break;
        }
        expect_status(f, disk_store_get(store, 1, back, BLOCK_BYTES), REMAT_IO);
        expect_message(f, how < 2 ? "cut off underneath" : "not what was written");
        expect_message(f, "block 1");
        disk_store_destroy(store);
    }
    remove_directory(directory);
}

static void every_flipped_bit_is_noticed(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    uint64_t seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    test_random random = {seed};
    /* Small blocks of several lengths bit by bit; a large one of several pieces at random. */
    static const uint64_t lengths[] = {1, 8, 17, 200, 1000, (5 << 20) / 2};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint64_t bytes = lengths[i], bits = bytes * 8;
        faulty_disk disk = {0};
        disk_io io = faulty_disk_io(&disk);
        disk_slot slot = {13, bytes};
        disk_store_options options = {directory, &slot, 1, 0, &io};
        disk_store *store;
        expect_ok(f, disk_store_create(f->context, &options, &store));
        unsigned char *source = malloc(bytes), *back = malloc(bytes);
        fill_block(source, bytes, i, seed);
        for (uint64_t n = 0; n < (bits <= 8000 ? bits : LESS_WHEN_SANITIZED(200, 40)); n++) {
            uint64_t bit = bits <= 8000 ? n : test_random_below(&random, bits);
            expect_ok(f, disk_store_put(store, 0, source, bytes));
            expect_ok(f, disk_store_drain(store));
            unsigned char byte = (unsigned char)(source[bit / 8] ^ 1u << bit % 8);
            assert_int_equal(pwrite(disk.file, &byte, 1, (off_t)(13 + bit / 8)), 1);
            expect_status(f, disk_store_get(store, 0, back, bytes), REMAT_IO);
            disk_store_reset(store);
        }
        free(source);
        free(back);
        disk_store_destroy(store);
    }
    remove_directory(directory);
}

static void no_memory_at_any_call(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    faulty_disk disk = {0};
    disk_io io = faulty_disk_io(&disk);
    disk_store *store = NULL;
    uint64_t before = f->memory.blocks, failures = 0;
    for (uint64_t at = 1; !store; at++) {
        f->memory.calls = 0;
        f->memory.fail_at = at;
        remat_status status = make_store(f, directory, &io, &store);
        f->memory.fail_at = 0;
        if (store)
            break;
        expect_status(f, status, REMAT_NO_MEMORY);
        assert_int_equal(f->memory.blocks, before);
        assert_int_equal(disk.opened, 0);
        failures++;
    }
    assert_int_equal(failures, 5);
    /* From here on nothing is asked for. */
    f->memory.calls = 0;
    f->memory.fail_at = 1;
    expect_ok(f, run(f, store, 0));
    assert_int_equal(f->memory.calls, 0);
    f->memory.fail_at = 0;
    disk_store_destroy(store);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_fault_at_every_call),    FIXTURE_TEST(a_disk_that_is_full_in_the_middle_of_a_block),
        FIXTURE_TEST(a_full_disk_shows_at_once),    FIXTURE_TEST(a_file_changed_underneath),
        FIXTURE_TEST(every_flipped_bit_is_noticed), FIXTURE_TEST(no_memory_at_any_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
