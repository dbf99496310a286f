/* The memory with everything kept, over the steps of a plan: what the page draws behind the memory of the plan.
 *
 * A step of the schedule that keeps everything is put where the plan runs the same action for the first time. */
#ifndef REMAT_REPORT_KEEP_ALL_OUTLINE_H
#define REMAT_REPORT_KEEP_ALL_OUTLINE_H

#include "graph/graph_walk.h"
#include "report/memory_walk.h"
#include "report/report_document.h"

/* "keep_all" of a graph's schedule; nothing where the schedule keeps everything itself. */
remat_status outline_of_graph(report_document *to, const remat_graph *graph, const graph_sequence *schedule,
                              graph_counting counting);

/* The same of a chain's plan, whose schedule was walked. */
remat_status outline_of_chain(report_document *to, const remat_plan *plan, const memory_walk *walk);

#endif
