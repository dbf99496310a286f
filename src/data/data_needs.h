#ifndef REMAT_DATA_DATA_NEEDS_H
#define REMAT_DATA_DATA_NEEDS_H

#include "model/network.h"
#include "data/data.h"

/* Input layers in their order, and the labels. */
data_needs network_data_needs(const remat_network *network);

#endif
