/* Learned positions, as a layer and as a part of embedding. */
#ifndef REMAT_LAYERS_POSITION_EMBEDDING_H
#define REMAT_LAYERS_POSITION_EMBEDDING_H

#include "layers/layer.h"

typedef struct position_embedding_options {
    uint64_t positions;
    double init_scale;
} position_embedding_options;

extern const layer_type layer_type_position_embedding;

#endif
