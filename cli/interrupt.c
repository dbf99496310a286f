#include "interrupt.h"

#include <signal.h>

static volatile sig_atomic_t came;

static void note(int number)
{
    came = number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

void interrupt_watch(void)
{
    signal(SIGINT, note);
    signal(SIGTERM, note);
}

int interrupt_signal(void)
{
    return came;
}
