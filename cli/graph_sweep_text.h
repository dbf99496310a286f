/* `remat sweep` of a graph. */
#ifndef REMAT_CLI_GRAPH_SWEEP_TEXT_H
#define REMAT_CLI_GRAPH_SWEEP_TEXT_H

#include "model_sweep.h"

/* Solves and shows; the exit code. */
int graph_sweep_show(remat_context *context, const remat_graph *graph, unsigned threads, sweep_format format,
                     sweep_extent extent);

#endif
