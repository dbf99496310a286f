/* Once warm, a training step makes no system call but those by which threads wait for each other. The kernel itself is the
 * judge: a child process allows itself nothing else for the next steps, and dies at the first call beyond. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <remat/remat.h>

#include "support/fixture.h"

enum { QUIET = 0, LOUD = 3, UNABLE = 77 };

/* Allows futex, sched_yield and exit_group on all threads; anything else kills the process. */
static bool allow_only_waiting(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* Trains in this process: some steps to get warm, then three that may only wait. */
static int train(const char *path, uint64_t budget, bool loud)
{
    remat_context *context;
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    remat_step_result result;
    remat_train_options_init(&options);
    options.threads = 2;
    options.budget_bytes = budget;
    if (remat_context_create(NULL, &context) != REMAT_OK || remat_model_load(context, path, &model) != REMAT_OK ||
        remat_trainer_create(model, &options, &trainer) != REMAT_OK)
        return LOUD;
    for (int i = 0; i < 2; i++)
        if (remat_trainer_step(trainer, &result) != REMAT_OK)
            return LOUD;
    uint64_t bytes = remat_context_bytes(context), peak = remat_context_peak_bytes(context);
    if (!allow_only_waiting())
        return UNABLE;
    for (int i = 0; i < 3; i++)
        if (remat_trainer_step(trainer, &result) != REMAT_OK)
            return LOUD;
    if (loud)
        (void)getppid();
    return remat_context_bytes(context) == bytes && remat_context_peak_bytes(context) == peak ? QUIET : LOUD;
}

/* What became of the child: its exit status, or -1 where a signal ended it. */
static int train_in_child(const char *path, uint64_t budget, bool loud)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(train(path, budget, loud));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void steps_make_no_system_calls(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint64_t budget;
    } models[] = {{"examples/models/gpt.ini", (uint64_t)40 << 20},
                  {"examples/models/resnet.ini", REMAT_NO_BUDGET},
                  {"examples/models/mlp.ini", REMAT_NO_BUDGET}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        int became = train_in_child(models[i].path, models[i].budget, false);
        if (became == UNABLE)
            skip();
        assert_int_equal(became, QUIET);
    }
}

/* The judge does judge. */
static void a_system_call_is_noticed(void **state)
{
    (void)state;
    int became = train_in_child("examples/models/mlp.ini", REMAT_NO_BUDGET, true);
    if (became == UNABLE)
        skip();
    assert_int_equal(became, -1);
}

int main(void)
{
    if (LESS_WHEN_SANITIZED(false, true))
        return 0; /* a sanitizer makes calls of its own */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_make_no_system_calls),
        cmocka_unit_test(a_system_call_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
