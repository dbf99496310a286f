/* Whether a layer is a rotary embedding whose angles depend on the number of steps. */
#ifndef REMAT_LAYERS_ROTARY_EMBEDDING_H
#define REMAT_LAYERS_ROTARY_EMBEDDING_H

#include "layers/layer.h"

bool rotary_depends_on_length(const layer_node *layer);

#endif
