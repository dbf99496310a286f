/* What clipping and accumulation add to what a model takes. */
#ifndef REMAT_CLI_FIT_ADDITIONS_H
#define REMAT_CLI_FIT_ADDITIONS_H

#include <remat/train.h>

/* Bytes of the smallest budget, and with nothing recomputed. */
typedef struct fit_ends {
    uint64_t least, keep_all;
} fit_ends;

/* Those that a trainer has. */
fit_ends fit_ends_of(const remat_trainer *trainer);

typedef struct fit_additions {
    fit_ends clipping, accumulating;
} fit_additions;

/* `own`: the ends of the model as it is, with clipping, accumulation, both or neither. Changes these settings of the model. */
remat_status fit_additions_find(remat_model *model, const remat_train_options *options, fit_ends own, bool clips,
                                bool accumulates, fit_additions *found);

#endif
