/* A graph as the search over held tensors sees it.
 *
 * The base order is the graph's own: the position of an action is its number, and one more position stands behind the last
 * for the results. An action that may run again ("makable") runs at its own position and in any cascade: the makers of all
 * that a position needs and that is not there run directly before it.
 *
 *     position     0    1    2    3     4        5
 *     base order   load F1   F2   loss  B2       B1
 *     a schedule   load F1   F2   loss  B2   F1' B1        F1' is a cascade at position 5
 *
 * The uses of a tensor are the positions that read it. Between two uses lies a gap: from the one (or from its making) to the
 * next. Behind the last use lies the tail, in which only cascades read it. For every gap the search decides from which
 * position on the tensor is held (hold_state.h). */
#ifndef REMAT_PLAN_GRAPH_HOLD_GRAPH_H
#define REMAT_PLAN_GRAPH_HOLD_GRAPH_H

#include "graph/graph_walk.h"

typedef struct hold_gap {
    uint32_t tensor;
    uint32_t begin, end; /* positions; end is HOLD_TAIL behind the last use */
} hold_gap;
#define HOLD_TAIL UINT32_MAX

typedef struct hold_tensor {
    uint64_t bytes;
    uint32_t maker;                /* the action that makes it; GRAPH_NONE: it is not makable */
    uint32_t first_gap, gap_count; /* of a makable one, in order; the tail is the last of them */
    bool rewritten;                /* of one that is not makable: it has several instances */
    uint32_t born, last_use; /* of one that is not makable and has one writer: positions; born is GRAPH_NONE if given */
} hold_tensor;

typedef struct hold_action {
    const uint32_t *reads, *writes; /* reads and updates, without given tensors */
    const uint32_t *read_gaps;      /* by read of a makable tensor: the gap that ends here */
    uint32_t read_count, write_count;
    uint32_t in_place_from, in_place_to; /* only where the sizes allow it; GRAPH_NONE */
    uint64_t workspace_bytes, cost;
    uint32_t unchanged_until; /* the position that changes what it reads; GRAPH_NONE: none */
    bool makable;             /* also of one that is not needed, which has no reads and writes and never runs */
    bool ends_in_place;       /* in the base order, in_place_from is not read after this action */
} hold_action;

typedef struct hold_graph {
    const remat_graph *graph;
    graph_counting counting;
    uint32_t action_count, tensor_count, gap_count;
    uint32_t position_count; /* action_count + 1: the last is for the results */
    hold_action *actions;    /* by position; the last one reads the results */
    hold_tensor *tensors;
    hold_gap *gaps;
    uint32_t *links, *link_gaps;
    size_t link_count;
    uint64_t *fixed_bytes; /* by position: held into it of all that is not makable, as far as the base order needs it */
    uint64_t given_bytes;  /* live all the time, where they count */
    uint32_t turn;         /* behind the last makable action */
    size_t makable_count;  /* tensors */
    /* Some action is neither `once` nor makable, because another one writes what it reads or writes. Here it runs exactly once, and in
     * its place, or never. Other schedules need not. */
    bool has_pinned;
} hold_graph;

/* The base order must be legal. */
remat_status hold_graph_create(const remat_graph *graph, graph_counting counting, hold_graph *made);
void hold_graph_release(hold_graph *made);

/* The gap of a makable tensor that a position lies in: begin < position <= end; GRAPH_NONE up to its making. */
static inline uint32_t hold_gap_before(const hold_graph *g, uint32_t tensor, uint32_t position)
{
    const hold_tensor *t = &g->tensors[tensor];
    const hold_gap *gaps = g->gaps + t->first_gap;
    if (position <= gaps[0].begin)
        return GRAPH_NONE;
    uint32_t low = 0, high = t->gap_count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (position <= gaps[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    return t->first_gap + low;
}

/* The gap that begins at a position or that it lies within: begin <= position < end. The tensor must be made by then. */
static inline uint32_t hold_gap_after(const hold_graph *g, uint32_t tensor, uint32_t position)
{
    return hold_gap_before(g, tensor, position + 1);
}

#endif
