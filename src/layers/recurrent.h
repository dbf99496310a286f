/* The last row of a sequence, as a layer and as a part of lstm and gru. */
#ifndef REMAT_LAYERS_RECURRENT_H
#define REMAT_LAYERS_RECURRENT_H

#include "layers/layer.h"

extern const layer_type layer_type_last_step;

#endif
