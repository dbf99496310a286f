#ifndef REMAT_DATA_DATA_NEEDS_H
#define REMAT_DATA_DATA_NEEDS_H

#include "model/network.h"
#include "data/data.h"

/* What the network reads: the input layers in order, and the labels. */
data_needs network_data_needs(const remat_network *network);

#endif
