/* Graphs of training steps that are hard to plan: long links cross where a chain would be cut. Bytes and costs follow from the
 * shapes of the layers: 4 bytes a number, costs in thousands of multiplications. */
#ifndef BENCH_HARD_GRAPHS_H
#define BENCH_HARD_GRAPHS_H

#include <remat/graph.h>
#include <remat/remat.h>

/* The names, in order; NULL behind the last. */
const char *hard_graph_name(size_t number);

/* unet             four levels, convolutions with norms, links from each level down to the same level up
 * densenet         blocks of 6 and 12 layers, each reads the concatenation of all before; flat concatenations
 * densenet_pairs   the same, each concatenation made of the last one and the new layer
 * encoder_decoder  12 blocks, then 12 whose inputs are mirrored links
 * cross_attention  6 blocks of an encoder, 6 of a decoder that all read the encoder's output
 * multi_task       a trunk of 16 layers, 6 heads from different depths
 * recurrent        24 steps, each with attention over all states before
 * transformer      12 blocks
 * resnet           16 blocks of two convolutions */
remat_graph *hard_graph(remat_context *context, const char *name);

/* Random layers that read one to three of the layers before, mostly near ones: about `actions` actions. What no layer
 * reads has a loss. */
remat_graph *hard_graph_random(remat_context *context, size_t actions, uint64_t seed);

#endif
