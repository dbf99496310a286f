/* A run as a trace that Perfetto and chrome://tracing open: every action a slice, recomputed ones in a row of their own,
 * the arena's memory as a counter. */
#ifndef REMAT_CLI_TRACE_H
#define REMAT_CLI_TRACE_H

#include "command.h"

typedef struct trace trace;

/* Watches the trainer's actions from here on and writes them to `path`. Says on stderr what is wrong. */
remat_status trace_start(remat_context *context, remat_trainer *trainer, const char *path, trace **started);

/* Ends the file; also of a run that failed. NULL is fine. A trace that cannot be written is a warning on stderr. */
void trace_end(trace *made);

#endif
