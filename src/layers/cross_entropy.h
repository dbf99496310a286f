/* What the two types of cross entropy share. */
#ifndef REMAT_LAYERS_CROSS_ENTROPY_H
#define REMAT_LAYERS_CROSS_ENTROPY_H

#include "layers/layer_resolve.h"

extern const layer_type layer_type_cross_entropy;

/* Rows that are worked on at a time: sums over rows may be cut there without a change of bits. */
enum { CROSS_ENTROPY_ROWS = KERNEL_K_BLOCK };

/* Labels: one for every row of input 0, so c*h of a sample; any shape of that many values will do. Sets what both types
 * say of themselves. */
remat_status cross_entropy_resolve(remat_context *context, layer_node *layer);

/* In evaluation, adds the rows whose largest logit is the label's to call->correct. */
void cross_entropy_count(const layer_call *call, uint64_t rows, uint64_t classes, const real *logits,
                         const int32_t *labels);

#endif
