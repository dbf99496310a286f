/* The graph of a training step, from layers: each has a forward action, a backward action, and where it has weights one for
 * their gradient, which is applied at once. */
#ifndef BENCH_NET_GRAPH_H
#define BENCH_NET_GRAPH_H

#include <remat/graph.h>
#include <remat/remat.h>

enum { MOST_INPUTS = 64 };

/* What the backward actions of a layer read besides the gradient. NEEDS_FOR_WEIGHTS: only the gradient of the weights reads the
 * inputs. NEEDS_PLACES, NEEDS_SMALL_PLACES and NEEDS_MASK: the forward writes a tensor for it, with 8 bytes, a byte or a bit for 4
 * bytes of the output. IN_PLACE: the output may take the bytes of the input, and the gradient of the input those of the output's. */
enum {
    NEEDS_INPUTS = 1,
    NEEDS_OUTPUT = 2,
    NEEDS_FOR_WEIGHTS = 4,
    NEEDS_PLACES = 8,
    NEEDS_MASK = 16,
    IN_PLACE = 32,
    NEEDS_SMALL_PLACES = 64
};

typedef struct net_layer {
    uint32_t output, gradient, extra, statistics;
    uint32_t inputs[MOST_INPUTS];
    size_t input_count;
    uint64_t bytes, cost, backward_cost, weight_bytes;
    int needs;
} net_layer;

typedef struct net {
    remat_context *context;
    remat_graph *graph;
    net_layer *layers;
    size_t count, capacity;
    bool with_masks;     /* for those who build nets: ReLU keeps a mask, not its output; places are bytes */
    uint32_t statistics; /* a tensor that the next layer reads, too, forward and backward; REMAT_NO_TENSOR */
} net;

void net_begin(remat_context *context, net *n);
/* Tensors that live all the time, such as weights. */
void net_give(net *n, uint64_t bytes);
/* Returns the number of the layer. One without inputs is data. Each backward action costs as much as the forward. */
uint32_t net_layer_add(net *n, const uint32_t *inputs, size_t count, uint64_t bytes, uint64_t cost, int needs,
                       uint64_t weight_bytes);
/* Statistics of a layer's output, such as means: they are small, and only the next layer reads them. */
void net_add_statistics(net *n, uint32_t layer, uint64_t bytes, uint64_t cost);
/* The cost of each backward action of the layer added last, where it is another one. */
void net_cost_backward(net *n, uint64_t cost);
uint32_t net_data(net *n, uint64_t bytes);
uint32_t net_one(net *n, uint32_t input, uint64_t bytes, uint64_t cost, int needs, uint64_t weight_bytes);
uint32_t net_two(net *n, uint32_t a, uint32_t b, uint64_t bytes, uint64_t cost, int needs);
/* A loss on each of the given layers, then everything backward. The caller owns the graph. */
remat_graph *net_finish(net *n, const uint32_t *losses, size_t count);
remat_graph *net_finish_last(net *n);

#endif
