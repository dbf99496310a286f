/* `remat check` for the plan of a graph. */
#ifndef REMAT_CLI_GRAPH_CHECK_H
#define REMAT_CLI_GRAPH_CHECK_H

#include "file_bytes.h"

/* Checks the plan file against the graph in `file`, and prints the figures. Says on stderr what is wrong. */
remat_status graph_check(remat_context *context, const file_bytes *file, const char *plan_path, bool json);

#endif
