/* Random models as graphs: chains with residual links, several inputs, saved extras, work in place, sums of gradients.
 * */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "graph/graph_object.h"
#include "plan/graph/graph_outline.h"
#include "support/fixture.h"

typedef struct graph_traits {
    size_t least_layers, most_layers; /* besides data and loss */
    bool repeats;                     /* one block of layers over and over */
    bool no_results;                  /* otherwise some graphs have */
} graph_traits;

/* What a graph does not say of its actions: hints for a planner, and which belong to one layer. */
typedef struct graph_notes {
    graph_hint *hints;
    uint32_t *layers;
    uint32_t layer_count;
} graph_notes;
void graph_notes_free(graph_notes *notes);

/* A graph that draws its own character: sizes equal or mixed, links far or near, weights applied at once or at the end.
 * `notes` may be NULL. */
remat_graph *random_graph(fixture *f, test_random *random, const graph_traits *traits, graph_notes *notes);

/* A transformer: embedding, `blocks` times attention and feed-forward with residuals and norms, a loss; `unit` bytes is
 * one residual tensor. */
remat_graph *transformer_graph(fixture *f, size_t blocks, uint64_t unit, graph_notes *notes);

void graph_print(const remat_graph *graph);

#endif
