/* Schedules for several runs under way at once (graph_place.h). Their peak is that of one run, and what all others keep at the turn. So
 * what is kept there counts for more than the peak of one run, for which the other searches look.
 *
 * These schedules are found by the same searches in a graph whose turn has a large workspace: in it, a low peak is one that keeps little
 * there. */
#ifndef REMAT_PLAN_GRAPH_FLIGHT_SEARCH_H
#define REMAT_PLAN_GRAPH_FLIGHT_SEARCH_H

#include "plan/graph/graph_search.h"

/* Adds them to the curve of a search with several runs. */
remat_status flight_search_run(graph_search *search, const graph_plan_options *options);

#endif
