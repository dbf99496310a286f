#ifndef REMAT_DATA_DATA_NEEDS_H
#define REMAT_DATA_DATA_NEEDS_H

#include "model/network.h"
#include "data/data.h"

/* Input layers in their order, and the labels. */
data_wants network_data_wants(const remat_network *network);

#endif
