#include "interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static volatile sig_atomic_t came;

static void note(int number)
{
    came = number;
    for (int i = 0; i < WATCHED; i++)
        signal(watched[i], SIG_DFL);
}

void interrupt_watch(void)
{
    for (int i = 0; i < WATCHED; i++) {
        struct sigaction before;
        bool ignored = sigaction(watched[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (watched[i] != SIGHUP || !ignored) /* nohup ignores SIGHUP */
            sigaction(watched[i], &(struct sigaction){.sa_handler = note, .sa_flags = SA_RESTART}, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
}

int interrupt_signal(void)
{
    return came;
}
