/* `remat plan` and `remat fit` of a graph. */
#ifndef REMAT_CLI_GRAPH_PLAN_TEXT_H
#define REMAT_CLI_GRAPH_PLAN_TEXT_H

#include "command.h"

typedef struct graph_plan_request {
    remat_graph_plan_options options;
    const char *output, *graph_output; /* files for the plan and for the graph; NULL: none */
    bool json, no_schedule, all_rows, plot;
} graph_plan_request;

/* Plans and shows; the exit code. */
int graph_plan_show(remat_context *context, const remat_graph *graph, const graph_plan_request *request);

/* Does it fit: the peak with everything kept, the smallest that was found, and the bound below which no schedule exists.
 * The exit code. */
int graph_fit_show(remat_context *context, const remat_graph *graph, const remat_graph_plan_options *options,
                   bool json);

#endif
