/* What the two types of cross entropy share. */
#ifndef REMAT_LAYERS_CROSS_ENTROPY_H
#define REMAT_LAYERS_CROSS_ENTROPY_H

#include "layers/layer_resolve.h"

extern const layer_type layer_type_cross_entropy;

/* Rows that are computed at a time. Sums over rows may be split there without changing bits. */
enum { CROSS_ENTROPY_ROWS = OPERATION_K_BLOCK };

/* Sets the fields that both types share. There is one label for every row of input 0, c*h in a sample; any shape with
 * that many values is accepted. */
remat_status cross_entropy_resolve(remat_context *context, layer_node *layer);

/* Records the loss of some rows of logits and, where wanted, its gradient, which may overlap the logits. */
remat_status cross_entropy_record(const layer_node *layer, const layer_call *call, tensor_ref logits, tensor_ref labels,
                                  uint64_t rows, uint64_t classes, tensor_ref gradient);

/* Call it after the last rows: adds the mean over all rows to the loss. */
remat_status cross_entropy_finish(const layer_node *layer, const layer_call *call);

#endif
