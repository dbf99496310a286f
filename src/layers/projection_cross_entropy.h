/* A fully_connected and the cross_entropy behind it, as one layer. */
#ifndef REMAT_LAYERS_PROJECTION_CROSS_ENTROPY_H
#define REMAT_LAYERS_PROJECTION_CROSS_ENTROPY_H

#include "layers/cross_entropy.h"
#include "layers/fully_connected.h"

typedef struct projection_options {
    fully_connected_options linear; /* first: it is read as the options of a fully_connected too */
    cross_entropy_options loss;
} projection_options;

extern const layer_type layer_type_projection_cross_entropy;

#endif
