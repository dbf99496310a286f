/* How the preloaded library speaks to the tracer: by signals, which the tracer does not pass on. */
#ifndef REMAT_TESTS_FAULT_MARKS_H
#define REMAT_TESTS_FAULT_MARKS_H

#include <signal.h>

enum { FAULT_BEGINS = SIGUSR1, FAULT_ALLOCATION_FAILS = SIGUSR2, FAULT_ENDS = SIGWINCH };

#endif
