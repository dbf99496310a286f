/* The inside of a profile. Only src/graph changes it; everything below reads `layers` and the three figures. */
#ifndef REMAT_GRAPH_CHAIN_H
#define REMAT_GRAPH_CHAIN_H

#include <remat/profile.h>

#include "base/error.h"

enum { REMAT_LONGEST_NAME = 1023 }; /* of a layer, a mode, a profile or a unit, in bytes */
enum { REMAT_MOST_MODES = 255 };    /* of a layer besides `keep`; the planner tries them all at every layer */

struct remat_profile {
    remat_context *context;
    const char *name, *cost_unit; /* NULL where not set */
    const char *algorithms;       /* what a device chose when it was measured (backend_algorithms); NULL: nothing */
    uint64_t input_bytes, input_gradient_bytes, loss_workspace_bytes;
    bool input_gradient_set;
    remat_layer *layers;
    size_t layer_count, layer_capacity;
    uint64_t most_bytes, most_cost; /* sums that show that no live set and no single pass can reach 2^63 */
    struct index_set *indexes;      /* which indexes are taken; see index_set.h */
};

/* Bytes of x_i: the input, or the output of layer i-1. */
static inline uint64_t remat_chain_x_bytes(const remat_profile *chain, size_t i)
{
    return i == 0 ? chain->input_bytes : chain->layers[i - 1].output_bytes;
}

/* Bytes of y_i, the gradient of x_i. */
static inline uint64_t remat_chain_y_bytes(const remat_profile *chain, size_t i)
{
    return i == 0 ? chain->input_gradient_bytes : chain->layers[i - 1].output_bytes;
}

/* Appends a layer as remat_profile_add_layer does, with errors that start at `where`. */
remat_status remat_chain_add(remat_profile *chain, const remat_layer_options *options, const remat_place *where);

enum { REMAT_LONGEST_ALGORITHMS = 1 << 16 }; /* in bytes */
remat_status remat_chain_set_algorithms(remat_profile *chain, const char *algorithms);

/* Sets one of the chain's own figures, likewise. */
remat_status remat_chain_set(remat_profile *chain, const char *field, uint64_t value, const remat_place *where);

#endif
