#ifndef REMAT_TRAIN_DATA_NEEDS_H
#define REMAT_TRAIN_DATA_NEEDS_H

#include "model/network.h"
#include "train/data.h"

/* Input layers in their order, and the labels. */
data_wants network_data_wants(const remat_network *network);

#endif
