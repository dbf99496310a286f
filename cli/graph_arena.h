/* The live ranges of a graph's schedule, for `remat arena`. */
#ifndef REMAT_CLI_GRAPH_ARENA_H
#define REMAT_CLI_GRAPH_ARENA_H

#include "file_bytes.h"

/* Of the plan in `plan`, or with NULL of the schedule that keeps everything. A write in place and what it replaced are one
 * row. Says on stderr what is wrong. */
remat_status graph_arena_read(remat_context *context, const file_bytes *plan, const remat_graph *graph,
                              remat_lifetime_table **table);

#endif
