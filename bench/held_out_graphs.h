/* More graphs like those of hard_graphs.h, with other shapes and other links. The search was not tuned with them: they show whether
 * what it does for those carries over. */
#ifndef BENCH_HELD_OUT_GRAPHS_H
#define BENCH_HELD_OUT_GRAPHS_H

#include <remat/graph.h>
#include <remat/remat.h>

/* The names, in order; NULL behind the last. */
const char *held_out_graph_name(size_t number);

/* unet3         three levels of 24, 48 and 96 channels
 * unet5         five levels from 12 channels on
 * unet_nested   as UNet++: every level has decoders of all depths, each reads all before it on its level
 * densenet_small  blocks of 5, 9 and 7 layers that grow by 20, without bottlenecks
 * translation   4 blocks over 800 tokens, then 8 over 200 that all read the outputs of those
 * five_heads    a convolutional trunk of 12 layers, 5 heads with own losses off different depths
 * recurrent_gates  24 steps with three gates, each with attention over all states before
 * mobilenet     17 inverted residual blocks
 * siamese       two towers, each of 6 residual blocks, compared at three depths
 * hrnet         four resolutions, all of which exchange after every stage */
remat_graph *held_out_graph(remat_context *context, const char *name);

#endif
