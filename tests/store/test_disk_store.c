#include "faulty_disk.h"

#include "store/disk_worker.h"

#include <signal.h>
#include <sys/wait.h>

static const uint64_t sizes[] = {4096, 0, 1, 4095, 100000, ((uint64_t)3 << 20) + 7};
#define BLOCKS (sizeof sizes / sizeof *sizes)

static disk_store *make_store(fixture *f, const char *directory, size_t queue_length, const disk_io *io)
{
    disk_slot slots[BLOCKS];
    uint64_t offset = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        slots[i] = (disk_slot){offset, sizes[i]};
        offset += sizes[i];
    }
    disk_store_options options = {directory, slots, BLOCKS, queue_length, io};
    disk_store *store;
    expect_ok(f, disk_store_create(f->context, &options, &store));
    return store;
}

typedef struct buffers {
    unsigned char *source[BLOCKS], *target[BLOCKS];
} buffers;

static void buffers_make(buffers *b)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        b->source[i] = malloc(sizes[i] + 1);
        b->target[i] = calloc(sizes[i] + 1, 1);
    }
}

static void buffers_free(buffers *b)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        free(b->source[i]);
        free(b->target[i]);
    }
}

static void put_all(fixture *f, disk_store *store, buffers *b, uint64_t version)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        fill_block(b->source[i], sizes[i], i, version);
        expect_ok(f, disk_store_put(store, i, b->source[i], sizes[i]));
    }
}

static void blocks_come_back(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    buffers b;
    buffers_make(&b);
    for (size_t queue = 0; queue < 4; queue++) {
        disk_store *store = make_store(f, directory, queue, NULL);
        uint64_t held = remat_context_bytes(f->context);
        for (uint64_t version = 0; version < 3; version++) {
            put_all(f, store, &b, version);
            /* Backwards, the next one always under way. */
            expect_ok(f, disk_store_prefetch(store, BLOCKS - 1, b.target[BLOCKS - 1], sizes[BLOCKS - 1]));
            for (size_t i = BLOCKS; i-- > 0;) {
                if (i > 0)
                    expect_ok(f, disk_store_prefetch(store, i - 1, b.target[i - 1], sizes[i - 1]));
                expect_ok(f, disk_store_get(store, i, b.target[i], sizes[i]));
                assert_memory_equal(b.target[i], b.source[i], sizes[i]);
                assert_true(disk_store_idle(store, i));
            }
        }
        assert_int_equal(remat_context_bytes(f->context), held); /* nothing more after creation */
        assert_int_equal(count_files(directory), 0);
        disk_store_destroy(store);
    }
    buffers_free(&b);
    remove_directory(directory);
}

static void in_any_order_and_replaced(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    uint64_t seed = test_seed(), version[BLOCKS] = {0};
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    test_random random = {seed};
    buffers b;
    buffers_make(&b);
    disk_store *store = make_store(f, directory, 3, NULL);
    put_all(f, store, &b, 0);
    for (uint64_t step = 1; step < LESS_WHEN_SANITIZED(2000, 300); step++) {
        size_t i = test_random_below(&random, BLOCKS);
        switch (test_random_below(&random, 4)) {
        case 0: /* write again; the buffer must be ours first */
            expect_ok(f, disk_store_wait(store, i));
            version[i] = step;
            fill_block(b.source[i], sizes[i], i, step);
            expect_ok(f, disk_store_put(store, i, b.source[i], sizes[i]));
            break;
        case 1: expect_ok(f, disk_store_prefetch(store, i, b.target[i], sizes[i])); break;
        case 2: /* with or without a prefetch, before or after the last put */
            expect_ok(f, disk_store_get(store, i, b.target[i], sizes[i]));
            fill_block(b.source[i], sizes[i], i, version[i]);
            assert_memory_equal(b.target[i], b.source[i], sizes[i]);
            break;
        default: expect_ok(f, disk_store_drain(store));
        }
    }
    expect_ok(f, disk_store_drain(store));
    disk_store_destroy(store);
    buffers_free(&b);
    remove_directory(directory);
}

static void works_behind_the_callers_back(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    sem_t gate;
    sem_init(&gate, 0, 0);
    faulty_disk disk = {.gate = &gate};
    disk_io io = faulty_disk_io(&disk);
    disk_store *store = make_store(f, directory, 3, &io);
    unsigned char source[4096], target[4096];
    fill_block(source, sizeof source, 0, 0);
    /* The disk stands still, and the calls return all the same. */
    expect_ok(f, disk_store_put(store, 0, source, 4096));
    expect_ok(f, disk_store_put(store, 2, source, 1));
    expect_ok(f, disk_store_prefetch(store, 0, target, 4096));
    assert_false(disk_store_idle(store, 0));
    assert_false(disk_store_idle(store, 2));
    for (size_t i = 0; i < 3; i++)
        sem_post(&gate);
    expect_ok(f, disk_store_get(store, 0, target, 4096));
    assert_memory_equal(source, target, 4096);
    assert_true(disk_store_idle(store, 0) && disk_store_idle(store, 2));
    /* Jobs that have not begun may be passed over at the end; one that is running ends first. */
    expect_ok(f, disk_store_put(store, 0, source, 4096));
    expect_ok(f, disk_store_put(store, 2, source, 1));
    expect_ok(f, disk_store_put(store, 3, source, 1));
    for (size_t i = 0; i < 3; i++)
        sem_post(&gate);
    disk_store_destroy(store);
    assert_int_equal(disk.opened, 0);
    sem_destroy(&gate);
    remove_directory(directory);
}

static void counts_what_it_does(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    buffers b;
    buffers_make(&b);
    disk_store *store = make_store(f, directory, 0, NULL);
    remat_store_counters counters;
    disk_store_count(store, &counters);
    assert_int_equal(counters.bytes_written + counters.bytes_read + counters.io_ns + counters.elapsed_ns, 0);
    assert_true(counters.kept_up);
    put_all(f, store, &b, 0);
    expect_ok(f, disk_store_get(store, 5, b.target[5], sizes[5]));
    expect_ok(f, disk_store_get(store, 1, b.target[1], 0));
    disk_store_count(store, &counters);
    uint64_t all = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        all += sizes[i];
    assert_int_equal(counters.bytes_written, all);
    assert_int_equal(counters.bytes_read, sizes[5]);
    assert_int_equal(counters.blocks_written, BLOCKS);
    assert_int_equal(counters.blocks_read, 2);
    assert_true(counters.io_ns > 0);
    assert_true(counters.wait_ns <= counters.elapsed_ns);
    disk_store_reset(store);
    disk_store_count(store, &counters);
    assert_int_equal(counters.bytes_written + counters.bytes_read + counters.io_ns + counters.wait_ns, 0);
    disk_store_destroy(store);
    buffers_free(&b);
    remove_directory(directory);
}

static void tells_whether_the_disk_kept_up(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    faulty_disk disk = {.slow = 30000};
    disk_io io = faulty_disk_io(&disk);
    unsigned char bytes[4096] = {0}, back[4096];
    for (int slow = 0; slow < 2; slow++) {
        disk_store *store = make_store(f, directory, 0, slow ? &io : NULL);
        remat_store_counters counters;
        expect_ok(f, disk_store_put(store, 0, bytes, 4096));
        expect_ok(f, disk_store_get(store, 0, back, 4096));
        disk_store_count(store, &counters);
        if (!slow) { /* the caller is busy for much longer than it waited, however long that was */
            usleep((useconds_t)(counters.wait_ns / 50) + 1000);
            expect_ok(f, disk_store_put(store, 0, bytes, 4096));
            disk_store_count(store, &counters);
        }
        assert_int_equal(counters.kept_up, !slow);
        if (slow)
            assert_true(counters.wait_ns >= 25000000 && counters.io_ns >= 60000000);
        disk_store_destroy(store);
    }
    remove_directory(directory);
}

static void reset_forgets(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    buffers b;
    buffers_make(&b);
    disk_store *store = make_store(f, directory, 0, NULL);
    for (uint64_t run = 0; run < 3; run++) {
        put_all(f, store, &b, run);
        if (run == 1)
            expect_ok(f, disk_store_get(store, 4, b.target[4], sizes[4]));
        disk_store_reset(store);
        assert_true(disk_store_idle(store, 4));
        expect_status(f, disk_store_get(store, 4, b.target[4], sizes[4]), REMAT_INVALID);
        expect_message(f, "never written");
    }
    disk_store_destroy(store);
    buffers_free(&b);
    remove_directory(directory);
}

static void slots_may_be_shared(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    disk_slot slots[3] = {{0, 100}, {50, 100}, {0, 100}};
    disk_store_options options = {.directory = directory, .slots = slots, .slot_count = 3};
    disk_store *store;
    expect_ok(f, disk_store_create(f->context, &options, &store));
    unsigned char bytes[3][100], back[100];
    for (size_t i = 0; i < 3; i++)
        fill_block(bytes[i], 100, i, 0);
    /* One after the other they are fine. */
    for (size_t i = 0; i < 3; i++) {
        expect_ok(f, disk_store_put(store, i, bytes[i], 100));
        expect_ok(f, disk_store_get(store, i, back, 100));
        assert_memory_equal(back, bytes[i], 100);
    }
    /* What was written over is gone, and is not handed out. */
    expect_status(f, disk_store_get(store, 1, back, 100), REMAT_IO);
    /* Likewise where the two lie in exactly the same place. */
    disk_store_reset(store);
    expect_ok(f, disk_store_put(store, 0, bytes[0], 100));
    expect_ok(f, disk_store_put(store, 2, bytes[2], 100));
    expect_status(f, disk_store_get(store, 0, back, 100), REMAT_IO);
    expect_message(f, "block 0");
    disk_store_destroy(store);
    remove_directory(directory);
}

static void wrong_use_is_told(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    disk_store *store = make_store(f, directory, 0, NULL);
    unsigned char bytes[5000] = {0};
    expect_status(f, disk_store_put(store, BLOCKS, bytes, 1), REMAT_INVALID);
    expect_message(f, "no block 6");
    expect_status(f, disk_store_put(store, 0, bytes, 4097), REMAT_INVALID);
    expect_message(f, "room for 4096 bytes, not for 4097");
    expect_status(f, disk_store_prefetch(store, 0, bytes, 4096), REMAT_INVALID);
    expect_message(f, "never written");
    expect_ok(f, disk_store_put(store, 0, bytes, 100));
    expect_status(f, disk_store_get(store, 0, bytes, 4096), REMAT_INVALID);
    expect_message(f, "100 bytes, not 4096");
    expect_status(f, disk_store_wait(store, BLOCKS), REMAT_INVALID);
    expect_ok(f, disk_store_wait(store, 3)); /* nothing to wait for */
    disk_store_destroy(store);
    disk_store_destroy(NULL);

    disk_slot slot = {UINT64_MAX - 5, 10};
    disk_store_options options = {.directory = directory, .slots = &slot, .slot_count = 1};
    expect_status(f, disk_store_create(f->context, &options, &store), REMAT_INVALID);
    assert_null(store);
    options.slot_count = 0;
    options.directory = NULL;
    expect_status(f, disk_store_create(f->context, &options, &store), REMAT_INVALID);
    options.directory = "/nowhere/at/all";
    expect_status(f, disk_store_create(f->context, &options, &store), REMAT_IO);
    expect_message(f, "/nowhere/at/all: no file can be made");
    options.directory = directory; /* no blocks at all is fine */
    expect_ok(f, disk_store_create(f->context, &options, &store));
    expect_ok(f, disk_store_drain(store));
    disk_store_destroy(store);
    remove_directory(directory);
}

/* A program that is killed leaves nothing behind, whichever way the file was made. */
static void nothing_is_left_after_a_crash(void **state)
{
    fixture *f = *state;
    char directory[64];
    make_directory(directory);
    int file = disk_io_open_named(directory);
    assert_true(file >= 0);
    assert_int_equal(count_files(directory), 0);
    assert_int_equal(pwrite(file, "abc", 3, 0), 3);
    close(file);
    assert_true(disk_io_open_named("/nowhere/at/all") < 0);

    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        disk_store *store = make_store(f, directory, 0, NULL);
        disk_store_put(store, 0, calloc(4096, 1), 4096);
        disk_store_drain(store);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    close(ready[0]);
    close(ready[1]);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(blocks_come_back),
        FIXTURE_TEST(in_any_order_and_replaced),
        FIXTURE_TEST(works_behind_the_callers_back),
        FIXTURE_TEST(counts_what_it_does),
        FIXTURE_TEST(tells_whether_the_disk_kept_up),
        FIXTURE_TEST(reset_forgets),
        FIXTURE_TEST(slots_may_be_shared),
        FIXTURE_TEST(wrong_use_is_told),
        FIXTURE_TEST(nothing_is_left_after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
