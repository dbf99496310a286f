/* How many values of each tensor an operation touches, and how. A recording needs it to convert tensors that the kernels do not
 * take as they are. */
#ifndef REMAT_BACKEND_EXTENTS_H
#define REMAT_BACKEND_EXTENTS_H

#include "backend/operation.h"

typedef struct operation_extent {
    uint64_t values; /* from the first to the last, gaps between rows included */
    bool reads;      /* their old values matter: they are read, added to, or some of them stay */
    bool writes;
} operation_extent;

/* One for each tensor of the operation, also of those that are none. False: nobody knows them for this operation. */
bool operation_extents(operation op, const void *args, operation_extent extents[OPERATION_MAX_TENSORS]);

#endif
