/* Whether a schedule computes what the order of its graph computes.
 *
 * A read means the latest instance of a tensor, as it is then. So an action that runs again behind one that has changed what it reads
 * computes something else, although the schedule is legal:
 *
 *     f1: reads w, writes h      b2: updates w      b1: reads h
 *     f1 b2 f1 b1                f1 runs again with another w, and b1 reads another h
 *
 * Results are read behind the last run. */
#ifndef REMAT_GRAPH_GRAPH_VALUES_H
#define REMAT_GRAPH_GRAPH_VALUES_H

#include "graph/graph_walk.h"

typedef struct graph_values {
    const remat_graph *graph;
    /* By link: the action that wrote or updated last what is read, in the order of the graph. NULL: no tensor is changed, so every
     * legal schedule computes the same. */
    uint32_t *expected;
    uint32_t *expected_results; /* the same, by result */
    uint32_t *changed_by;       /* by tensor, while a schedule is looked at */
} graph_values;
remat_status graph_values_create(const remat_graph *graph, graph_values *values);
void graph_values_release(graph_values *values);

/* The first run that reads something else. */
typedef struct graph_stale_read {
    size_t position; /* as many as there are runs: the tensor is a result */
    uint32_t tensor;
    uint32_t changed_by; /* the action that did it last; GRAPH_NONE: nobody has written it */
} graph_stale_read;

/* Whether there is none in a legal schedule. */
bool graph_values_agree(const graph_values *values, const graph_sequence *sequence, graph_stale_read *first);

/* The same for one schedule: `text` says which run reads what, or is empty. */
enum { GRAPH_STALE_TEXT = 400 };
remat_status graph_values_judge(const remat_graph *graph, const graph_sequence *sequence, char text[GRAPH_STALE_TEXT]);

/* Fails with this text and the status `wrong`. */
remat_status graph_values_check(const remat_graph *graph, const graph_sequence *sequence, remat_status wrong);

#endif
