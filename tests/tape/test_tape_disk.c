/* The disk store under the tape: what it takes, what it writes, and every fault of the disk, one by one. */
#include "tape/tape_object.h"
#include "test_tape_toy.h"

#include <errno.h>

typedef struct disk_case {
    remat_profile *profile;
    toy t;
    remat_tape_options options;
    remat_tape *tape;
} disk_case;

static void disk_begin(fixture *f, disk_case *c, uint32_t layers, uint64_t bytes, const char *strategy)
{
    c->profile = toy_equal_profile(f->context, layers, bytes);
    toy_begin(&c->t, c->profile, layers, false);
    remat_tape_callbacks callbacks = toy_callbacks(&c->t);
    remat_tape_options_init(&c->options);
    c->options.strategy = strategy;
    c->options.element = REMAT_BYTES;
    c->options.store = REMAT_TAPE_DISK;
    c->options.directory = toy_directory();
    expect_ok(f, remat_tape_create(f->context, c->profile, &callbacks, &c->options, &c->tape));
}

static void disk_end(disk_case *c)
{
    remat_tape_destroy(c->tape);
    toy_end(&c->t);
    remat_profile_destroy(c->profile);
}

static void on_disk_the_arena_does_not_grow_with_the_chain(void **state)
{
    fixture *f = *state;
    for (uint32_t layers = 100; layers <= 400; layers *= 2) {
        disk_case c;
        disk_begin(f, &c, layers, 4000, "none");
        assert_true(toy_agrees(f->context, c.tape, &c.t, 0, layers));
        remat_tape_statistics statistics;
        remat_tape_get_statistics(c.tape, &statistics);
        assert_true(statistics.store.blocks_written > layers - 12);
        assert_int_equal(statistics.store.blocks_read, statistics.store.blocks_written);
        assert_int_equal(statistics.store.bytes_written, statistics.store.blocks_written * 4000);
        assert_int_equal(statistics.stored_bytes, statistics.store.bytes_written);
        /* A backward's state and input, four more that are being read, and two gradients: the most there is. */
        assert_int_equal(statistics.arena_bytes, 8 * 4032);
        disk_end(&c);
    }
}

/* A state that comes back several times is written once. */
static void a_state_is_written_once(void **state)
{
    fixture *f = *state;
    disk_case c;
    disk_begin(f, &c, 300, 640, "revolve:5");
    assert_true(toy_agrees(f->context, c.tape, &c.t, 0, 5));
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_true(statistics.store.blocks_read > statistics.store.blocks_written);
    disk_end(&c);
}

/* ---- faults of the disk, one by one ---- */

typedef enum fault { FAULT_WRITE, FAULT_FULL, FAULT_SHORT, FAULT_READ, FAULT_END, FAULT_FLIP, FAULTS } fault;

typedef struct faulty_disk {
    disk_io system;
    fault kind;
    uint64_t writes, reads, fail_at; /* from 1 */
} faulty_disk;

static int faulty_open(void *user, const char *directory)
{
    faulty_disk *disk = user;
    return disk->system.open(NULL, directory);
}

static int faulty_reserve(void *user, int file, uint64_t bytes)
{
    faulty_disk *disk = user;
    return disk->system.reserve(NULL, file, bytes);
}

static int faulty_close(void *user, int file)
{
    faulty_disk *disk = user;
    return disk->system.close(NULL, file);
}

static ssize_t faulty_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    if (++disk->writes == disk->fail_at && disk->kind <= FAULT_SHORT) {
        errno = disk->kind == FAULT_FULL ? ENOSPC : EIO;
        if (disk->kind != FAULT_SHORT)
            return -1;
        return bytes > 1 ? disk->system.write(NULL, file, from, bytes / 2, offset) : 0;
    }
    return disk->system.write(NULL, file, from, bytes, offset);
}

static ssize_t faulty_read(void *user, int file, void *to, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    bool now = ++disk->reads == disk->fail_at;
    if (now && disk->kind == FAULT_READ) {
        errno = EIO;
        return -1;
    }
    if (now && disk->kind == FAULT_END)
        return 0;
    ssize_t got = disk->system.read(NULL, file, to, bytes, offset);
    if (now && disk->kind == FAULT_FLIP && got > 0)
        ((unsigned char *)to)[(size_t)got / 3] ^= 4;
    return got;
}

/* Either the run fails with REMAT_IO or, where the store could make up for it, the gradient is right; and the next run
 * is right in any case. */
static void faults_end_in_errors_and_never_in_wrong_gradients(void **state)
{
    fixture *f = *state;
    unsigned failed = 0, repaired = 0;
    for (int planned = 0; planned < 2; planned++)
        for (int kind = 0; kind < FAULTS; kind++)
            for (uint64_t at = 1; at < LESS_WHEN_SANITIZED(60u, 25u); at++) {
                disk_case c;
                disk_begin(f, &c, 40, 200, planned ? "revolve:6" : "none");
                faulty_disk disk = {.system = disk_io_system(), .kind = (fault)kind, .fail_at = at};
                disk_io io = {faulty_open, faulty_reserve, faulty_write, faulty_read, faulty_close, &disk};
                expect_ok(f, tape_store_open(c.tape, toy_directory(), &io));
                unsigned char input[200] = {1}, got[200], wanted[200];
                toy reference;
                toy_begin(&reference, c.profile, 40, false);
                toy_reference(&reference, 0, 0, input, wanted);
                remat_status status = remat_tape_run(c.tape, input, got);
                bool reached = (kind <= FAULT_SHORT ? disk.writes : disk.reads) >= at;
                if (status == REMAT_OK) {
                    assert_memory_equal(got, wanted, 200);
                    assert_true(!reached || kind == FAULT_SHORT);
                    repaired += reached;
                } else {
                    expect_status(f, status, REMAT_IO);
                    failed++;
                }
                disk.fail_at = 0;
                remat_tape_set_step(c.tape, 0);
                expect_ok(f, remat_tape_run(c.tape, input, got));
                assert_memory_equal(got, wanted, 200);
                toy_end(&reference);
                disk_end(&c);
            }
    print_message("%u faults reported, %u made up for\n", failed, repaired);
    assert_true(failed > 100);
}

/* ---- a slow disk ---- */

static ssize_t slow_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    usleep(2000);
    return disk->system.write(NULL, file, from, bytes, offset);
}

static void a_disk_that_does_not_keep_up_is_told(void **state)
{
    fixture *f = *state;
    disk_case c;
    disk_begin(f, &c, 40, 200, "none");
    faulty_disk disk = {.system = disk_io_system()};
    disk_io io = {faulty_open, faulty_reserve, slow_write, faulty_read, faulty_close, &disk};
    expect_ok(f, tape_store_open(c.tape, toy_directory(), &io));
    assert_true(toy_agrees(f->context, c.tape, &c.t, 0, 3)); /* no room is given away before it is written */
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_false(statistics.store.kept_up);
    assert_true(statistics.store.wait_ns > 20000000 && statistics.store_ns >= statistics.store.wait_ns);
    expect_text(remat_tape_remark(c.tape), "the disk did not keep up");
    disk_end(&c);
}

static void a_missing_directory_is_an_error(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 30, 100);
    toy t;
    toy_begin(&t, profile, 30, false);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape_options options;
    remat_tape *tape;
    remat_tape_options_init(&options);
    options.store = REMAT_TAPE_DISK;
    options.directory = "/there/is/no/such/directory";
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_IO);
    expect_message(f, "/there/is/no");
    assert_null(tape);
    toy_end(&t);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(on_disk_the_arena_does_not_grow_with_the_chain),
        FIXTURE_TEST(a_state_is_written_once),
        FIXTURE_TEST(faults_end_in_errors_and_never_in_wrong_gradients),
        FIXTURE_TEST(a_disk_that_does_not_keep_up_is_told),
        FIXTURE_TEST(a_missing_directory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
