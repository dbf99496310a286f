/* Once warm, a training step makes no system call but those by which threads wait for each other, and those that read
 * samples from a file of more than 1 MiB; and it allocates nothing, not even for a moment. The kernel itself is the judge of
 * calls: a child process allows itself nothing else for the next steps, and dies at the first call beyond. Allocations are
 * counted. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <remat/remat.h>

#include "support/fixture.h"
#include "support/scratch_files.h"

enum { QUIET = 0, LOUD = 3, GREEDY = 4, UNABLE = 77, KILLED = -1 };

/* ---- counting ---- */

static _Atomic uint64_t allocations;

/* The program's own functions stand before those of the C library: everybody's allocations come through here. */
#if defined(__GLIBC__) && !defined(TESTS_SANITIZED)
#define COUNTS_MALLOC
extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes), *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    allocations++;
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    allocations++;
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}
#endif

static uint64_t all_allocations(const failing_allocator *of_context)
{
    return allocations + of_context->calls;
}

/* ---- judging ---- */

/* Allows futex, exit_group and, where wanted, pread on all threads; anything else kills the process. */
static bool allow_only_waiting(bool reads)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, reads ? SYS_pread64 : SYS_futex, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

typedef struct trial {
    const char *path; /* an example; NULL: the tower below, with */
    const char *settings, *data;
    const char *strategy;
    uint64_t budget_mib; /* 0: none */
    uint64_t epochs;     /* that must begin in the quiet steps */
    bool reads;          /* the data is in a large file */
    void (*disturb)(void);
} trial;

/* Products that are worth two threads, forward and backward. */
static const char *model_path(const trial *of)
{
    char text[1024];
    if (of->path)
        return of->path;
    snprintf(
        text, sizeof text,
        "[Model]\nbatch_size = 64\nepochs = 50\n%s\n[Optimizer]\nType = adam\nlearning_rate = 0.001\n[Dataset]\n%s\n"
        "[in : input]\ninput_shape = 1:1:8\n"
        "[fc1 : fully_connected]\nunit = 300\nactivation = gelu\n"
        "[fc2 : fully_connected]\nunit = 300\nactivation = relu\n"
        "[out : fully_connected]\nunit = 2\n"
        "[loss : mse]\n",
        of->settings, of->data);
    return scratch_write_text("quiet.ini", text);
}

/* Trains in this process: two steps to get warm, then five that may only wait. */
static int train(const char *path, const trial *of)
{
    failing_allocator memory = {0};
    remat_allocator hook = failing_allocator_hook(&memory);
    remat_context *context;
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    remat_step_result result;
    remat_train_options_init(&options);
    options.threads = 2;
    options.strategy = of->strategy;
    if (of->budget_mib)
        options.budget_bytes = of->budget_mib << 20;
    if (remat_context_create(&hook, &context) != REMAT_OK)
        return LOUD;
    if (remat_model_load(context, path, &model) != REMAT_OK ||
        remat_trainer_create(model, &options, &trainer) != REMAT_OK) {
        print_error("%s\n", remat_context_message(context));
        return LOUD;
    }
    for (int i = 0; i < 2; i++)
        if (remat_trainer_step(trainer, &result) != REMAT_OK)
            return LOUD;
    uint64_t before = all_allocations(&memory), epoch = result.epoch;
    if (!allow_only_waiting(of->reads))
        return UNABLE;
    for (int i = 0; i < 5; i++)
        if (remat_trainer_step(trainer, &result) != REMAT_OK)
            return LOUD;
    if (of->disturb)
        of->disturb();
    if (all_allocations(&memory) != before)
        return GREEDY;
    return result.epoch >= epoch + of->epochs ? QUIET : LOUD;
}

/* What became of the child: its exit status, or KILLED by a signal. */
static int train_in_child(const trial *of)
{
    const char *path = model_path(of);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(train(path, of));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}

/* Containers may forbid filters. */
static bool may_filter_calls(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(allow_only_waiting(false) ? QUIET : UNABLE);
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == QUIET;
}

static void expect_outcome(const trial *of, int wanted)
{
    int became = train_in_child(of);
    if (became != wanted)
        fail_msg("%s, %s, %s: %d instead of %d (0: quiet, 3: an error, 4: allocations, 77: no filter, -1: killed for a "
                 "system call)",
                 of->path ? of->path : "tower", of->settings ? of->settings : "", of->data ? of->data : "", became,
                 wanted);
}

static void examples_are_quiet(void **state)
{
    (void)state;
    expect_outcome(&(trial){.path = "examples/models/gpt.ini", .budget_mib = 16}, QUIET);
    expect_outcome(&(trial){.path = "examples/models/resnet.ini"}, QUIET);
    expect_outcome(&(trial){.path = "examples/models/mlp.ini"}, QUIET);
}

/* 192 samples are three batches: five steps meet two new epochs. */
#define LITTLE_DATA "Type = random\nsamples = 192"

static void accumulation_is_quiet(void **state)
{
    (void)state;
    static const char *const data = "Type = random\nsamples = 4096";
    expect_outcome(&(trial){.settings = "accumulate = 4", .data = data}, QUIET);
    expect_outcome(&(trial){.settings = "accumulate = 2\nclip_norm = 0.5", .data = data, .strategy = "full"}, QUIET);
    expect_outcome(&(trial){.settings = "accumulate = 3", .data = LITTLE_DATA, .epochs = 5}, QUIET);
}

static void a_new_epoch_is_quiet(void **state)
{
    (void)state;
    expect_outcome(&(trial){.settings = "", .data = LITTLE_DATA, .epochs = 2}, QUIET);
    expect_outcome(&(trial){.settings = "clip_norm = 0.5", .data = LITTLE_DATA "\nshuffle = false", .epochs = 2},
                   QUIET);
}

/* ---- files ---- */

static void write_csv(size_t rows, size_t columns)
{
    capture to;
    capture_begin(&to);
    for (size_t i = 0; i < rows * columns; i++)
        fprintf(to.stream, "%.3f%c", 0.001 * (double)(i * 37 % 2001) - 1, (i + 1) % columns ? ',' : '\n');
    capture_end(&to);
    scratch_write("quiet.csv", to.text, to.length);
    free(to.text);
}

static void write_npy(const char *name, size_t rows, size_t columns)
{
    capture to;
    char header[118];
    int length = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                          rows, columns);
    memset(header + length, ' ', sizeof header - (size_t)length);
    capture_begin(&to);
    fwrite("\x93NUMPY\x01\0\x76\0", 1, 10, to.stream);
    fwrite(header, 1, sizeof header, to.stream);
    for (size_t i = 0; i < rows * columns; i++)
        fwrite(&(float){0.001f * (float)(i * 37 % 2001) - 1}, sizeof(float), 1, to.stream);
    capture_end(&to);
    scratch_write(name, to.text, to.length);
    free(to.text);
}

static void files_are_quiet(void **state)
{
    (void)state;
    write_csv(192, 10);
    expect_outcome(&(trial){.settings = "", .data = "Type = csv\ninputs = quiet.csv\nlabels = 2", .epochs = 2}, QUIET);
    trial npy = {.settings = "", .data = "Type = npy\ninputs = x.npy\nlabels = y.npy", .epochs = 2};
    write_npy("x.npy", 192, 8);
    write_npy("y.npy", 192, 2);
    expect_outcome(&npy, QUIET);
    write_npy("x.npy", 40000, 8);
    write_npy("y.npy", 40000, 2);
    npy.epochs = 0;
    expect_outcome(&npy, KILLED);
    npy.reads = true;
    expect_outcome(&npy, QUIET);
}

/* ---- the judge does judge ---- */

static void make_a_call(void)
{
    (void)getppid();
}

static __attribute__((unused)) void allocate_for_a_moment(void)
{
    void *volatile memory = malloc(64);
    free(memory);
}

static void disturbances_are_noticed(void **state)
{
    (void)state;
    trial of = {.path = "examples/models/mlp.ini", .disturb = make_a_call};
    expect_outcome(&of, KILLED);
#ifdef COUNTS_MALLOC
    of.disturb = allocate_for_a_moment;
    expect_outcome(&of, GREEDY);
#endif
    expect_outcome(&(trial){.settings = "", .data = LITTLE_DATA, .epochs = 3}, LOUD);
}

int main(void)
{
    if (LESS_WHEN_SANITIZED(false, true))
        return TEST_SKIPPED; /* a sanitizer makes calls of its own */
    if (!may_filter_calls())
        return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_quiet),       cmocka_unit_test(accumulation_is_quiet),
        cmocka_unit_test(a_new_epoch_is_quiet),     cmocka_unit_test(files_are_quiet),
        cmocka_unit_test(disturbances_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
