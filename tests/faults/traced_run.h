/* Runs a program and fails one of its allocations or system calls, or all from one on. Every call is seen, those that the
 * C library makes for itself too, because the program runs under ptrace. x86-64 only. */
#ifndef REMAT_TESTS_TRACED_RUN_H
#define REMAT_TESTS_TRACED_RUN_H

#include <stdbool.h>

typedef enum fault_mode {
    FAULT_NONE,
    FAULT_ALLOCATION, /* the n-th allocation fails */
    FAULT_NO_MEMORY,  /* all allocations from the n-th on fail */
    FAULT_CALL,       /* the n-th call fails, each kind with an error that it may have */
    FAULT_INTERRUPT,  /* the n-th call fails with EINTR, of those that may */
    FAULT_SHORT,      /* the n-th read or write does half of what is asked */
    FAULT_FULL_DISK,  /* from the n-th write on, nothing can be written or created */
    FAULT_NO_PAGES,   /* from the n-th request for pages on, the system has none */
    FAULT_KILL,       /* the n-th call never comes: the program is killed before it */
    FAULT_MODES
} fault_mode;

extern const char *const fault_mode_names[FAULT_MODES];

typedef struct traced_run {
    const char *const *argv; /* NULL behind the last */
    const char *library;     /* that is preloaded, as seen from `folder` */
    const char *folder;      /* to run in */
    const char *in, *out, *err;
    fault_mode mode;
    unsigned long long number; /* n, from 1 on */
    bool spare_pages;          /* requests for memory are not counted as calls: no sanitizer survives one that fails */
    unsigned long kill_after;  /* with this, sends `signal` after so many microseconds, and traces nothing */
    int signal;
} traced_run;

typedef struct traced_result {
    bool hit;       /* the n-th came */
    bool on_stderr; /* and was a write to standard error */
    bool timed_out;
    const char *call; /* what failed */
    int code;         /* exit code, -1 after a signal */
    int signal;
} traced_result;

/* False, with a message, where this machine cannot trace. */
bool traced_run_do(const traced_run *run, traced_result *result);

#endif
