#include "rank_voice.h"
#include "command.h"
#include "shown.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT = 2000 };

/* What a rank that is not the first prints: it is kept, for the case that the rank fails. */
static int kept = -1, terminal = -1;

static void keep_output(void)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    kept = memfd_create("stderr", MFD_CLOEXEC);
    if (kept >= 0)
        dup2(kept, STDERR_FILENO);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        close(nowhere);
    }
}

/* The last lines of it, without the name of the program. */
static const char *kept_text(char text[TEXT])
{
    text[0] = 0;
    const off_t length = kept >= 0 ? lseek(kept, 0, SEEK_END) : 0;
    const ssize_t got = pread(kept, text, TEXT - 1, length > TEXT - 1 ? length - (TEXT - 1) : 0);
    text[got > 0 ? got : 0] = 0;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == '\n';)
        text[--end] = 0;
    return strncmp(text, "remat: ", 7) == 0 ? text + 7 : text;
}

remat_status ranks_open(remat_context *context, double timeout, remat_communicator **ranks)
{
    remat_status status = remat_communicator_open(context, NULL, ranks);
    if (status != REMAT_OK)
        return command_fail(context, status), status;
    if (timeout > 0)
        remat_communicator_set_timeout(*ranks, timeout);
    if (!ranks_are_first(*ranks))
        keep_output();
    return REMAT_OK;
}

int ranks_close(remat_communicator *ranks, int code)
{
    const bool first = ranks_are_first(ranks);
    fflush(stdout);
    remat_communicator_close(ranks);
    return first ? code : 0;
}

bool ranks_are_first(const remat_communicator *ranks)
{
    return remat_communicator_rank(ranks) == 0;
}

remat_status ranks_agree(remat_communicator *ranks, remat_status mine)
{
    char own[TEXT], text[TEXT];
    uint64_t rank;
    if (remat_communicator_size(ranks) == 1)
        return mine;
    const char *why = mine != REMAT_OK && !ranks_are_first(ranks) ? kept_text(own) : "";
    remat_status status = remat_communicator_agree(ranks, mine, why, &rank, text, sizeof text);
    if (status != REMAT_OK && rank > 0 && ranks_are_first(ranks))
        fprintf(stderr, "remat: rank %llu: %s\n", (unsigned long long)rank, shown(text));
    return status;
}

void ranks_fail(remat_communicator *ranks, remat_status status)
{
    char text[TEXT];
    if (terminal >= 0)
        dprintf(terminal, "remat: rank %llu: %s\n", (unsigned long long)remat_communicator_rank(ranks),
                shown(kept_text(text)));
    remat_communicator_abort(ranks, status);
}
