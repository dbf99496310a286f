/* `remat sweep` of a model: the predicted time of a step over the memory that training takes. And what its table shares
 * with that of a profile. */
#ifndef REMAT_CLI_MODEL_SWEEP_H
#define REMAT_CLI_MODEL_SWEEP_H

#include "command.h"

typedef enum sweep_format { SWEEP_TABLE, SWEEP_JSON, SWEEP_CSV } sweep_format;

/* Of the table: every row of a long curve, and a picture below. */
typedef struct sweep_extent {
    bool all, plot;
} sweep_extent;

/* Solves and shows; the exit code. Of the options it uses the costs, the batch and the threads. */
int model_sweep_show(remat_context *context, remat_model *model, const remat_train_options *options,
                     sweep_format format, sweep_extent extent);

/* Rows of a long table: both ends, the knee, and what lies evenly between; and the line that counts the others. */
bool sweep_row_is_shown(size_t i, size_t count, size_t knee);
void sweep_rest_print(size_t hidden);

#endif
