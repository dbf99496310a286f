/* What the two types of cross entropy share. */
#ifndef REMAT_LAYERS_CROSS_ENTROPY_H
#define REMAT_LAYERS_CROSS_ENTROPY_H

#include "layers/layer_resolve.h"

extern const layer_type layer_type_cross_entropy;

/* Rows that are worked on at a time: sums over rows may be cut there without a change of bits. */
enum { CROSS_ENTROPY_ROWS = OPERATION_K_BLOCK };

/* Labels: one for every row of input 0, so c*h of a sample; any shape of that many values will do. Sets what both types
 * say of themselves. */
remat_status cross_entropy_resolve(remat_context *context, layer_node *layer);

/* Records the loss of some rows of logits and, where wanted, its gradient, which may overlap the logits. */
remat_status cross_entropy_record(const layer_node *layer, const layer_call *call, tensor_ref logits, tensor_ref labels,
                                  uint64_t rows, uint64_t classes, tensor_ref gradient);

/* Behind the last rows: the sum becomes the mean over all rows and joins the loss. */
remat_status cross_entropy_finish(const layer_node *layer, const layer_call *call);

#endif
