/* `remat plan` of a model: what training it would keep and recompute. */
#ifndef REMAT_CLI_MODEL_PLAN_H
#define REMAT_CLI_MODEL_PLAN_H

#include "command.h"

typedef struct model_plan_request {
    remat_train_options options;
    const char *output, *profile_output;          /* files for the plan and for its chain, NULL: none */
    const char *graph_output, *graph_plan_output; /* and for its graph and the plan of that */
    bool json, no_schedule, all_layers, plot;
} model_plan_request;

/* Plans and shows; the exit code. */
int model_plan_show(remat_context *context, remat_model *model, const model_plan_request *request);

#endif
