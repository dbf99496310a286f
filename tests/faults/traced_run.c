#include "faults/traced_run.h"

#include "faults/fault_marks.h"
#include "faults/system_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const fault_mode_names[FAULT_MODES] = {"none",  "allocation", "no-memory", "call", "interrupt",
                                                   "short", "full-disk",  "no-pages",  "kill"};

enum { SECONDS = 60, THREADS = 64 };

/* ---- the program's side ---- */

static void redirect(const char *path, int flags, int to)
{
    int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, to) < 0)
        _exit(99);
    if (file != to)
        close(file);
}

static _Noreturn void become(const traced_run *run)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", run->number);
    if (run->mode == FAULT_ALLOCATION)
        setenv("REMAT_FAIL_ALLOCATION", number, 1);
    if (run->mode == FAULT_NO_MEMORY)
        setenv("REMAT_FAIL_ALLOCATIONS_FROM", number, 1);
    redirect(run->in ? run->in : "/dev/null", O_RDONLY, 0);
    redirect(run->out, O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(run->err, O_WRONLY | O_CREAT | O_TRUNC, 2);
    if (chdir(run->folder) != 0)
        _exit(99);
    if (run->mode != FAULT_NONE) {
        setenv("LD_PRELOAD", run->library, 1);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(98);
        raise(SIGSTOP);
    }
    execv(run->argv[0], (char *const *)run->argv);
    _exit(99);
}

/* ---- the tracer's side ---- */

typedef struct tracer {
    const traced_run *run;
    traced_result *result;
    pid_t program;
    bool begun;
    unsigned long long count;
    /* Calls that were changed, until they return. */
    struct {
        pid_t thread;
        int error; /* that it returns; 0: what the kernel says */
        struct user_regs_struct before;
    } altered[THREADS];
} tracer;

static const system_call *find_call(unsigned long number)
{
    for (size_t i = 0; i < sizeof system_calls / sizeof system_calls[0]; i++)
        if ((unsigned long)system_calls[i].number == number)
            return &system_calls[i];
    return NULL;
}

static bool creates(const system_call *call, const struct user_regs_struct *registers)
{
    return (call->number == SYS_open && (registers->rsi & O_CREAT)) ||
           (call->number == SYS_openat && (registers->rdx & O_CREAT));
}

/* Whether this call is one of those that the mode counts. */
static bool is_counted(const traced_run *run, const system_call *call, const struct user_regs_struct *registers)
{
    switch (run->mode) {
    case FAULT_CALL: return !(run->spare_pages && call->properties & CALL_PAGES);
    case FAULT_KILL: return true;
    case FAULT_INTERRUPT: return call->properties & CALL_SLOW;
    case FAULT_SHORT: return call->properties & CALL_MOVES && registers->rdx > 1;
    case FAULT_FULL_DISK:
        return (call->properties & CALL_FILLS || creates(call, registers)) &&
               !(call->number == SYS_write && registers->rdi == 2);
    case FAULT_NO_PAGES:
        /* mmap gives pages only without a file */
        return call->properties & CALL_PAGES && (call->number != SYS_mmap || (int)registers->r8 == -1);
    default: return false;
    }
}

/* Makes the call do less, or nothing. The error that it is to return; 0: what the kernel says. */
static int alter(fault_mode mode, const system_call *call, struct user_regs_struct *registers)
{
    if (mode == FAULT_SHORT) {
        registers->rdx /= 2;
        return 0;
    }
    if (call->number == SYS_brk) { /* has no error: it returns where the data ends, here without moving it */
        registers->rdi = 0;
        return 0;
    }
    registers->orig_rax = (unsigned long long)-1; /* no such call */
    return mode == FAULT_INTERRUPT ? EINTR : mode == FAULT_FULL_DISK ? ENOSPC : call->error;
}

static void note_hit(tracer *at, const char *call)
{
    if (!at->result->hit)
        at->result->call = call;
    at->result->hit = true;
}

static void enter(tracer *at, pid_t thread, struct user_regs_struct *registers)
{
    const traced_run *run = at->run;
    const system_call *call = at->begun ? find_call(registers->orig_rax) : NULL;
    if (!call || !is_counted(run, call, registers))
        return;
    at->count++;
    bool is_on = run->mode == FAULT_FULL_DISK || run->mode == FAULT_NO_PAGES;
    if (at->count != run->number && !(is_on && at->count > run->number))
        return;
    if (!at->result->hit)
        at->result->on_stderr = call->number == SYS_write && registers->rdi == 2;
    note_hit(at, call->name);
    if (run->mode == FAULT_KILL) {
        kill(at->program, SIGKILL);
        return;
    }
    for (int i = 0; i < THREADS; i++)
        if (at->altered[i].thread == 0) {
            at->altered[i].thread = thread;
            at->altered[i].before = *registers;
            at->altered[i].error = alter(run->mode, call, registers);
            ptrace(PTRACE_SETREGS, thread, NULL, registers);
            return;
        }
}

static void leave(tracer *at, pid_t thread, struct user_regs_struct *registers)
{
    for (int i = 0; i < THREADS; i++)
        if (at->altered[i].thread == thread) {
            at->altered[i].thread = 0;
            /* the program expects to find its arguments where it left them */
            registers->rdi = at->altered[i].before.rdi;
            registers->rdx = at->altered[i].before.rdx;
            if (at->altered[i].error)
                registers->rax = (unsigned long long)-at->altered[i].error;
            ptrace(PTRACE_SETREGS, thread, NULL, registers);
        }
}

static void at_call(tracer *at, pid_t thread)
{
    struct __ptrace_syscall_info info;
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 ||
        ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        enter(at, thread, &registers);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        leave(at, thread, &registers);
}

static void note_end(traced_result *result, int status)
{
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void nothing(int number)
{
    (void)number;
}

/* A wait that never returns would hang the campaign: the alarm interrupts it. */
static pid_t wait_for(tracer *at, int *status)
{
    pid_t which = waitpid(-1, status, __WALL);
    if (which >= 0 || errno != EINTR)
        return which;
    at->result->timed_out = true;
    kill(at->program, SIGKILL);
    return waitpid(-1, status, __WALL);
}

static void trace(tracer *at)
{
    const bool sees_calls = at->run->mode != FAULT_ALLOCATION && at->run->mode != FAULT_NO_MEMORY;
    for (int status;;) {
        pid_t thread = wait_for(at, &status);
        if (thread < 0)
            return;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == at->program)
                note_end(at->result, status);
            continue;
        }
        int stop = WSTOPSIG(status), deliver = 0;
        if (stop == (SIGTRAP | 0x80))
            at_call(at, thread);
        else if (stop == FAULT_BEGINS)
            at->begun = true;
        else if (stop == FAULT_ENDS)
            at->begun = false;
        else if (stop == FAULT_ALLOCATION_FAILS)
            note_hit(at, "an allocation");
        else if (stop != SIGTRAP && stop != SIGSTOP) /* of the tracing itself: exec, a new thread */
            deliver = stop;
        ptrace(at->begun && sees_calls ? PTRACE_SYSCALL : PTRACE_CONT, thread, NULL, (void *)(long)deliver);
    }
}

static bool run_traced(const traced_run *run, pid_t program, traced_result *result)
{
    tracer at = {.run = run, .result = result, .program = program};
    int status;
    if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status)) {
        fputs("faults: this machine does not let programs be traced\n", stderr);
        return false;
    }
    ptrace(PTRACE_SETOPTIONS, program, NULL,
           (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL));
    ptrace(PTRACE_CONT, program, NULL, NULL);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = nothing}, NULL);
    alarm(SECONDS);
    trace(&at);
    alarm(0);
    return true;
}

static bool run_plain(const traced_run *run, pid_t program, traced_result *result)
{
    tracer at = {.run = run, .result = result, .program = program};
    int status = 0;
    if (run->kill_after) {
        usleep((useconds_t)run->kill_after);
        kill(program, run->signal);
    }
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = nothing}, NULL);
    alarm(SECONDS);
    wait_for(&at, &status);
    alarm(0);
    note_end(result, status);
    return true;
}

bool traced_run_do(const traced_run *run, traced_result *result)
{
    *result = (traced_result){.call = "nothing"};
    pid_t program = fork();
    if (program == 0)
        become(run);
    if (program < 0) {
        perror("faults: fork");
        return false;
    }
    return run->mode == FAULT_NONE ? run_plain(run, program, result) : run_traced(run, program, result);
}
