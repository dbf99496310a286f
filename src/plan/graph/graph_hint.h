/* What a planner may be told of an action besides its graph. It goes into the profile of the chain of pieces, for people
 * and for strategies that go by type; no other part of a plan depends on it. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_HINT_H
#define REMAT_PLAN_GRAPH_GRAPH_HINT_H

#include <remat/profile.h>

typedef struct graph_hint {
    remat_layer_type type;
    uint64_t flops;
} graph_hint;

#endif
