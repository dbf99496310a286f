#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"

#include "base/parallel.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_ARE_WATCHED /* the sanitizer allows no new threads after a fork */
#endif
#endif

enum { MOST = 1000, SECONDS = 60 };

/* How often each pass ran, the range and thread of each, and how many ranges there were. */
typedef struct record {
    atomic_int runs[MOST];
    int threads[MOST];
    parallel_range ranges[MOST];
    atomic_int range_count, wrong;
} record;

static void note_range(const void *args, parallel_range range)
{
    record *to = *(record *const *)args;
    atomic_fetch_add(&to->range_count, 1);
    for (size_t i = range.begin; i < range.end; i++) {
        atomic_fetch_add(&to->runs[i], 1);
        to->threads[i] = range.thread;
        to->ranges[i] = range;
    }
}

static void expect_once(const record *of, size_t count)
{
    for (size_t i = 0; i < MOST; i++)
        assert_int_equal(of->runs[i], i < count ? 1 : 0);
}

/* ---- splits ---- */

/* The lengths of the ranges differ by one at most, longer ones first, and their order is that of the threads. */
static void a_static_loop_is_split_evenly(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 7; threads++)
        for (size_t count = 0; count <= 40; count++) {
            record of = {0}, *to = &of;
            parallel_static(threads, count, note_range, &to);
            expect_once(&of, count);
            size_t each = count / (size_t)threads, longer = count % (size_t)threads;
            for (size_t i = 0; i < count; i++) {
                size_t thread = i < longer * (each + 1) ? i / (each + 1) : longer + (i - longer * (each + 1)) / each;
                assert_int_equal(of.threads[i], thread);
            }
        }
}

static void a_dynamic_loop_hands_out_chunks(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads++)
        for (size_t chunk = 0; chunk <= 7; chunk++)
            for (size_t count = 0; count <= 60; count += 3) {
                record of = {0}, *to = &of;
                parallel_dynamic(threads, count, chunk, note_range, &to);
                expect_once(&of, count);
                size_t length = chunk ? chunk : 1;
                for (size_t i = 0; i < count; i++) {
                    parallel_range range = of.ranges[i];
                    assert_in_range(range.thread, 0, threads - 1);
                    if (threads == 1 || count <= length) { /* one range is enough */
                        assert_int_equal(range.end - range.begin, count);
                        continue;
                    }
                    assert_int_equal(range.begin, i / length * length);
                    assert_int_equal(range.end, range.begin + length < count ? range.begin + length : count);
                }
            }
}

static void a_loop_of_no_passes_calls_nothing(void **state)
{
    (void)state;
    record of = {0}, *to = &of;
    parallel_static(4, 0, note_range, &to);
    parallel_dynamic(4, 0, 8, note_range, &to);
    assert_int_equal(of.range_count, 0);
    parallel_static(0, 3, note_range, &to);
    parallel_static(-1, 0, note_range, &to);
    assert_int_equal(of.range_count, 1);
}

/* Ranges that run at the same time have numbers, and so memory, of their own. */
static void note_thread(const void *args, parallel_range range)
{
    record *to = *(record *const *)args;
    if (atomic_fetch_add(&to->runs[range.thread], 1) != 0)
        atomic_fetch_add(&to->wrong, 1);
    sched_yield();
    atomic_fetch_sub(&to->runs[range.thread], 1);
}

static void threads_that_run_at_once_have_different_numbers(void **state)
{
    (void)state;
    record of = {0}, *to = &of;
    for (int round = 0; round < 50; round++) {
        parallel_dynamic(4, 64, 1, note_thread, &to);
        parallel_static(4, 64, note_thread, &to);
    }
    assert_int_equal(of.wrong, 0);
}

/* Grows, needs fewer, sleeps, grows again. */
static void a_team_grows_when_it_has_to(void **state)
{
    (void)state;
    static const int sizes[] = {2, 8, 3, 1, 12, 2, 20, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        record of = {0}, *to = &of;
        assert_int_equal(parallel_start(sizes[i]), sizes[i]);
        parallel_static(sizes[i], 500, note_range, &to);
        expect_once(&of, 500);
        assert_int_equal(of.range_count, sizes[i]);
        usleep(2000);
    }
}

/* ---- loops in loops, loops beside loops ---- */

static void check_inner_loop(const void *args, parallel_range range)
{
    record *to = *(record *const *)args;
    for (size_t i = range.begin; i < range.end; i++) {
        record inner = {0}, *inner_to = &inner;
        parallel_static(4, 10, note_range, &inner_to);
        parallel_dynamic(4, 10, 1, note_range, &inner_to);
        bool alone = inner.range_count == 2 && inner.threads[9] == 0 && parallel_start(4) == 1;
        for (size_t k = 0; k < 10; k++)
            alone = alone && inner.runs[k] == 2;
        atomic_fetch_add(&to->runs[i], alone ? 1 : 100);
    }
}

static void an_inner_loop_runs_on_one_thread(void **state)
{
    (void)state;
    record of = {0}, *to = &of;
    parallel_static(3, 30, check_inner_loop, &to);
    expect_once(&of, 30);
}

static void *run_many_loops(void *args)
{
    atomic_int *wrong = args;
    for (int round = 0; round < 100; round++) {
        record *of = calloc(1, sizeof *of);
        int threads = 2 + round % 3;
        parallel_static(threads, 100, note_range, &of);
        parallel_dynamic(threads, 100, 7, note_range, &of);
        for (size_t i = 0; i < 100; i++)
            if (of->runs[i] != 2)
                atomic_fetch_add(wrong, 1);
        free(of);
    }
    return NULL;
}

static void several_callers_do_not_disturb_each_other(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    pthread_t callers[CALLERS];
    atomic_int wrong = 0;
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, run_many_loops, &wrong), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    assert_int_equal(wrong, 0);
}

/* ---- processes ---- */

enum { FINE = 0, BROKEN = 3 };

static int run_loops_in_child(void)
{
    alarm(SECONDS); /* where a loop waits for threads that are not there, the child dies */
    for (int threads = 2; threads <= 6; threads += 2) {
        record of = {0}, *to = &of;
        if (parallel_start(threads) != threads)
            return BROKEN;
        parallel_static(threads, 300, note_range, &to);
        parallel_dynamic(threads, 300, 5, note_range, &to);
        for (size_t i = 0; i < 300; i++)
            if (of.runs[i] != 2)
                return BROKEN;
    }
    return FINE;
}

static void expect_fine(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), FINE);
}

static void a_forked_child_starts_workers_of_its_own(void **state)
{
    (void)state;
#ifdef THREADS_ARE_WATCHED
    skip();
#endif
    record of = {0}, *to = &of;
    parallel_static(4, 100, note_range, &to);
    pid_t child = fork();
    if (child == 0) /* where no sanitizer gets confused, its workers are ended as well */
        LESS_WHEN_SANITIZED(exit, _exit)(run_loops_in_child());
    expect_fine(child);
    parallel_static(4, 100, note_range, &to); /* the parent's are still there */
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(of.runs[i], 2);
}

/* The child goes on with the loop: it has its own range only, and can begin another loop afterwards. */
static void fork_once(const void *args, parallel_range range)
{
    pid_t *child = *(pid_t *const *)args;
    if (range.thread == 0) {
        alarm(0);
        *child = fork();
        if (*child == 0)
            alarm(SECONDS);
    }
}

static void a_loop_may_fork(void **state)
{
    (void)state;
#ifdef THREADS_ARE_WATCHED
    skip();
#endif
    pid_t child = -1, *to = &child;
    parallel_static(3, 3, fork_once, &to);
    if (child == 0)
        _exit(run_loops_in_child());
    expect_fine(child);
}

static void *run_loops_for_ever(void *args)
{
    atomic_int *begun = args;
    static record of;
    record *to = &of;
    for (;;) {
        parallel_static(3, 100, note_range, &to);
        *begun = 1;
    }
    return NULL;
}

static void a_process_may_end_while_loops_run(void **state)
{
    (void)state;
#ifdef TESTS_SANITIZED
    skip(); /* the sanitizer stops all threads to look for leaks, which takes its time */
#endif
    pid_t child = fork();
    if (child == 0) {
        static atomic_int begun;
        pthread_t thread;
        alarm(SECONDS);
        if (pthread_create(&thread, NULL, run_loops_for_ever, &begun) != 0)
            _exit(BROKEN);
        while (!begun)
            sched_yield();
        exit(FINE);
    }
    expect_fine(child);
}

/* ---- the system ---- */

static int threads_allowed;

static int create_some(pthread_t *made, const pthread_attr_t *attributes, void *(*run)(void *), void *args)
{
    if (threads_allowed-- <= 0)
        return EAGAIN;
    return pthread_create(made, attributes, run, args);
}

static void a_refused_thread_makes_the_team_smaller(void **state)
{
    (void)state;
    record of = {0}, *to = &of;
    const int before = 24; /* more than in any test before */
    assert_int_equal(parallel_start(before), before);
    parallel_create_thread = create_some;
    threads_allowed = 3;
    int some = parallel_start(before + 10);
    assert_int_equal(some, before + 3);
    parallel_static(before + 10, MOST, note_range, &to);
    expect_once(&of, MOST);
    assert_int_equal(of.range_count, some);
    parallel_dynamic(before + 10, MOST, 1, note_range, &to);
    parallel_create_thread = pthread_create;
    assert_int_equal(parallel_start(before + 10), before + 10);
}

static void note_signals(const void *args, parallel_range range)
{
    record *to = *(record *const *)args;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    to->threads[range.thread] = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM);
}

static void workers_leave_signals_to_the_caller(void **state)
{
    (void)state;
    record of = {0}, *to = &of;
    parallel_static(4, 4, note_signals, &to);
    for (int i = 0; i < 4; i++)
        assert_true(of.threads[i] == (i > 0));
}

static void the_default_is_what_the_process_may_use(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(parallel_default_threads(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(parallel_default_threads(), 1);
    static const struct {
        const char *text;
        int threads;
    } cases[] = {{"3", 3}, {"4,2", 4}, {"1", 1}, {"", 1}, {"0", 1}, {"-2", 1}, {"many", 1}, {"3x", 1}, {"99999", 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("OMP_NUM_THREADS", cases[i].text, 1);
        assert_int_equal(parallel_default_threads(), cases[i].threads);
    }
    unsetenv("OMP_NUM_THREADS");
    sched_setaffinity(0, sizeof before, &before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_loop_is_split_evenly),
        cmocka_unit_test(a_dynamic_loop_hands_out_chunks),
        cmocka_unit_test(a_loop_of_no_passes_calls_nothing),
        cmocka_unit_test(threads_that_run_at_once_have_different_numbers),
        cmocka_unit_test(a_team_grows_when_it_has_to),
        cmocka_unit_test(an_inner_loop_runs_on_one_thread),
        cmocka_unit_test(several_callers_do_not_disturb_each_other),
        cmocka_unit_test(a_forked_child_starts_workers_of_its_own),
        cmocka_unit_test(a_loop_may_fork),
        cmocka_unit_test(a_process_may_end_while_loops_run),
        cmocka_unit_test(a_refused_thread_makes_the_team_smaller),
        cmocka_unit_test(workers_leave_signals_to_the_caller),
        cmocka_unit_test(the_default_is_what_the_process_may_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
