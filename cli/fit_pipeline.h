/* `remat fit MODEL --ranks N --pipeline P`: what the rank of each stage needs. */
#ifndef REMAT_CLI_FIT_PIPELINE_H
#define REMAT_CLI_FIT_PIPELINE_H

#include "fit_ranks.h"

/* As fit_ranks_show. */
int fit_pipeline_show(remat_model *model, const model_options *given, const fit_ranks *asked);

#endif
