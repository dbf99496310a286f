/* Types that programs register (remat/custom_layer.h), beside those of layer_table.c. They belong to a context. */
#ifndef REMAT_LAYERS_LAYER_REGISTRY_H
#define REMAT_LAYERS_LAYER_REGISTRY_H

#include "layers/layer.h"

/* The registered type of this name, or the one at a position; NULL: there is none. */
const layer_type *layer_registry_find(const remat_context *context, const char *name);
const layer_type *layer_registry_list(const remat_context *context, size_t position);

/* Whether a type was registered and takes fp32 only. */
bool layer_registry_is_single(const layer_type *type);

#endif
