/* A command that runs as several ranks speaks with one voice: the first rank's. */
#ifndef REMAT_CLI_RANK_VOICE_H
#define REMAT_CLI_RANK_VOICE_H

#include <stdbool.h>

#include <remat/ranks.h>

/* Joins the ranks that a launcher started with this one; a process alone is one rank. From here on the other ranks print
 * nothing. Says on stderr what is wrong. `timeout` in seconds; 0: the default. */
remat_status ranks_open(remat_context *context, double timeout, remat_communicator **ranks);

/* Closes it. Only the first rank returns the exit code of the command; the others 0. */
int ranks_close(remat_communicator *ranks, int code);

bool ranks_are_first(const remat_communicator *ranks);

/* Whether all ranks got here with REMAT_OK; otherwise the status of the first that did not. The first rank prints why. */
remat_status ranks_agree(remat_communicator *ranks, remat_status mine);

/* Ends all ranks after a failure of this one, which has said why. Does not return. */
void ranks_fail(remat_communicator *ranks, remat_status status) __attribute__((noreturn));

#endif
