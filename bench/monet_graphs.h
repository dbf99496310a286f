/* The five networks of MONeT's published table, as training steps at its batch sizes: 4 bytes a number, costs in nanoseconds
 * from multiplications and bytes. Weights and their gradients live all the time. */
#ifndef BENCH_MONET_GRAPHS_H
#define BENCH_MONET_GRAPHS_H

#include "net_graph.h"

typedef struct monet_case {
    const char *name;
    uint64_t batch;
    double full, less; /* published memory in GiB: everything kept, and what it was reduced to ... */
    double overhead;   /* ... for so many percent more time */
    void (*build)(net *n, uint64_t batch);
} monet_case;

/* NULL behind the last. */
const monet_case *monet_list(size_t number);
/* With masks, as in MONeT: ReLU keeps a bit a number, and pooling a byte. Without, as in PyTorch: the output, and 8 bytes. */
remat_graph *monet_graph(remat_context *context, const monet_case *which, bool with_masks);

#endif
