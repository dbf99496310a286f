/* What every backend must do: memory, copies, order of work, events, kernels. And that the fenced one keeps the host out. */
#include "backend/recording.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const devices[] = {"cpu", "fenced"};
enum { DEVICES = sizeof devices / sizeof devices[0], COUNT = 1000 };

typedef struct device_rig {
    backend *device;
    backend_queue *queue;
    recording calls;
} device_rig;

static device_rig open_rig(fixture *f, const char *device)
{
    device_rig rig;
    expect_ok(f, backend_open(f->context, &(backend_options){.device = device, .threads = 2}, &rig.device));
    expect_ok(f, backend_queue_create(rig.device, &rig.queue));
    recording_begin(&rig.calls, rig.device);
    return rig;
}

static void close_rig(device_rig *rig)
{
    recording_end(&rig->calls);
    backend_queue_destroy(rig->queue);
    backend_close(rig->device);
}

static tensor_ref floats_at(const backend_memory *memory)
{
    return (tensor_ref){memory->at, REMAT_FP32};
}

/* ---- memory ---- */

static void memory_comes_zeroed_where_asked(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < DEVICES; d++) {
        device_rig rig = open_rig(f, devices[d]);
        const uint64_t sizes[] = {64, 4096, (uint64_t)33 << 20};
        for (int s = 0; s < 3; s++) {
            backend_memory memory;
            char *host = malloc(sizes[s]);
            memset(host, 1, sizes[s]);
            expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, sizes[s], true, &memory));
            assert_int_equal((uintptr_t)memory.at % 64, 0);
            assert_int_equal(memory.bytes, sizes[s]);
            expect_ok(f, backend_copy_out(rig.queue, host, memory.at, sizes[s]));
            expect_ok(f, backend_wait(rig.queue));
            for (uint64_t i = 0; i < sizes[s]; i++)
                assert_int_equal(host[i], 0);
            backend_release(rig.device, &memory);
            assert_null(memory.at);
            free(host);
        }
        backend_memory none;
        expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, 0, true, &none));
        assert_null(none.at);
        backend_release(rig.device, &none);
        close_rig(&rig);
    }
}

/* ---- work ---- */

/* Copies and calls happen in the order in which they are given: x + x again and again, each result read back. */
static void work_is_done_in_order(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < DEVICES; d++) {
        device_rig rig = open_rig(f, devices[d]);
        backend_memory memory;
        float host[COUNT], got[5][COUNT];
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)i;
        expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, sizeof host, false, &memory));
        const tensor_ref x = floats_at(&memory);
        expect_ok(f, record_add(&rig.calls, &(op_add){.a = x, .b = x, .y = x, .count = COUNT}));
        expect_ok(f, backend_copy_in(rig.queue, memory.at, host, sizeof host));
        for (int run = 0; run < 5; run++) {
            expect_ok(f, backend_run(rig.queue, &rig.calls, 0, rig.calls.used));
            expect_ok(f, backend_copy_out(rig.queue, got[run], memory.at, sizeof host));
        }
        expect_ok(f, backend_wait(rig.queue));
        for (int run = 0; run < 5; run++)
            for (int i = 0; i < COUNT; i++)
                assert_true(got[run][i] == (float)(i << (run + 1)));
        backend_release(rig.device, &memory);
        close_rig(&rig);
    }
}

/* A part of a recording is run by its positions; a call without a kernel does nothing. */
static void parts_of_a_recording_run_alone(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < DEVICES; d++) {
        device_rig rig = open_rig(f, devices[d]);
        backend_memory memory;
        float value = 1;
        size_t at[4];
        expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, 64, true, &memory));
        for (int i = 0; i < 3; i++) {
            at[i] = rig.calls.used;
            expect_ok(f, record_fill(&rig.calls, &(op_fill){.y = floats_at(&memory), .count = 1, .value = 10 + i}));
        }
        at[3] = rig.calls.used;
        for (int last = 1; last <= 3; last++) {
            expect_ok(f, backend_run(rig.queue, &rig.calls, at[0], at[last]));
            expect_ok(f, backend_copy_out(rig.queue, &value, memory.at, sizeof value));
            expect_ok(f, backend_wait(rig.queue));
            assert_true(value == (float)(9 + last));
        }
        recording_call(&rig.calls, at[2])->kernel = NULL;
        expect_ok(f, backend_run(rig.queue, &rig.calls, 0, rig.calls.used));
        expect_ok(f, backend_copy_out(rig.queue, &value, memory.at, sizeof value));
        expect_ok(f, backend_wait(rig.queue));
        assert_true(value == 11);
        backend_release(rig.device, &memory);
        close_rig(&rig);
    }
}

/* More tasks than a queue holds at once, and a queue that is destroyed with work left. */
static void queues_take_any_number_of_tasks(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < DEVICES; d++) {
        device_rig rig = open_rig(f, devices[d]);
        backend_memory memory;
        float value = 0;
        expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, 64, true, &memory));
        const tensor_ref x = floats_at(&memory);
        expect_ok(f, record_fill(&rig.calls, &(op_fill){.y = {memory.at + 4, REMAT_FP32}, .count = 1, .value = 1}));
        expect_ok(
            f, record_accumulate(&rig.calls, &(op_accumulate){.x = {memory.at + 4, REMAT_FP32}, .y = x, .count = 1}));
        for (int i = 0; i < 300; i++)
            expect_ok(f, backend_run(rig.queue, &rig.calls, 0, rig.calls.used));
        expect_ok(f, backend_copy_out(rig.queue, &value, memory.at, sizeof value));
        backend_queue_destroy(rig.queue);
        rig.queue = NULL;
        assert_true(value == 300);
        backend_release(rig.device, &memory);
        close_rig(&rig);
    }
}

/* ---- events ---- */

static void events_tell_when_work_was_done(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < DEVICES; d++) {
        device_rig rig = open_rig(f, devices[d]);
        backend_memory memory;
        backend_event *events[3];
        uint64_t times[3], again;
        expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, (uint64_t)4 << 20, true, &memory));
        expect_ok(f, record_fill(&rig.calls, &(op_fill){.y = floats_at(&memory), .count = 1 << 20, .value = 2}));
        for (int i = 0; i < 3; i++)
            expect_ok(f, backend_event_create(rig.device, &events[i]));
        for (int i = 0; i < 3; i++) {
            expect_ok(f, backend_event_record(rig.queue, events[i]));
            expect_ok(f, backend_run(rig.queue, &rig.calls, 0, rig.calls.used));
        }
        for (int i = 0; i < 3; i++)
            expect_ok(f, backend_event_wait(rig.device, events[i], &times[i]));
        assert_true(times[0] < times[1] && times[1] < times[2]);
        expect_ok(f, backend_event_record(rig.queue, events[0])); /* an event can be used again */
        expect_ok(f, backend_event_wait(rig.device, events[0], &again));
        assert_true(again > times[2]);
        for (int i = 0; i < 3; i++)
            backend_event_destroy(rig.device, events[i]);
        backend_event_destroy(rig.device, NULL);
        expect_ok(f, backend_wait(rig.queue));
        backend_release(rig.device, &memory);
        close_rig(&rig);
    }
}

/* ---- what there is not ---- */

static void wrong_choices_are_told(void **state)
{
    fixture *f = *state;
    backend *device;
    expect_status(f, backend_open(f->context, &(backend_options){.device = "gpu"}, &device), REMAT_INVALID);
    expect_message(f, "there is no device 'gpu'; there");
    expect_status(f, backend_open(f->context, &(backend_options){.kernels = "sse9"}, &device), REMAT_INVALID);
    expect_message(f, "there are no kernels 'sse9' for this processor; there are fast");
    expect_status(f, backend_open(f->context, &(backend_options){.threads = 5000}, &device), REMAT_INVALID);
    expect_message(f, "5000 threads are more than");
    backend_close(NULL);
    backend_queue_destroy(NULL);
}

/* Types without a kernel are found when a call is recorded. */
static void missing_kernels_are_found_when_recording(void **state)
{
    fixture *f = *state;
    device_rig rig = open_rig(f, "cpu");
    float x = 0;
    const op_add mixed = {.a = {&x, REMAT_FP32}, .b = {&x, REMAT_INT8}, .y = {&x, REMAT_FP32}, .count = 1};
    expect_status(f, record_add(&rig.calls, &mixed), REMAT_INVALID);
    expect_message(f, "kernels have no add of fp32, int8, fp32");
    assert_int_equal(rig.calls.used, 0);
    close_rig(&rig);
}

/* ---- the fence ---- */

/* Whoever touches the address that the fenced backend hands out is stopped by the system. */
static void the_fence_keeps_the_host_out(void **state)
{
    fixture *f = *state;
    device_rig rig = open_rig(f, "fenced");
    backend_memory memory;
    expect_ok(f, backend_allocate(rig.device, MEMORY_DEVICE, 4096, true, &memory));
    for (int writes = 0; writes < 2; writes++) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            volatile char *byte = memory.at;
            if (writes)
                *byte = 1;
            _exit(*byte);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    assert_false(rig.device->host_visible);
    backend_release(rig.device, &memory);
    close_rig(&rig);
}

int main(void)
{
    if (strcmp(fenced_device(), "fenced") != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(memory_comes_zeroed_where_asked),          FIXTURE_TEST(work_is_done_in_order),
        FIXTURE_TEST(parts_of_a_recording_run_alone),           FIXTURE_TEST(queues_take_any_number_of_tasks),
        FIXTURE_TEST(events_tell_when_work_was_done),           FIXTURE_TEST(wrong_choices_are_told),
        FIXTURE_TEST(missing_kernels_are_found_when_recording), FIXTURE_TEST(the_fence_keeps_the_host_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
