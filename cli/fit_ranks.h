/* `remat fit MODEL --ranks N`: what each rank needs, and how long a step takes. */
#ifndef REMAT_CLI_FIT_RANKS_H
#define REMAT_CLI_FIT_RANKS_H

#include <argp.h>

#include "model_options.h"

typedef struct fit_ranks {
    uint64_t ranks;        /* 0: the question is not about ranks */
    uint64_t step_samples; /* 0: the model's */
    bool has_network, has_shard;
    remat_cluster cluster; /* with has_network: the speed of its network */
} fit_ranks;

/* These end the program with a message where the text is wrong. */
void fit_ranks_network(struct argp_state *state, remat_context *context, const char *text, fit_ranks *asked);
void fit_ranks_speed(struct argp_state *state, remat_context *context, const char *text, remat_train_options *options);

/* Prints the answers. Returns the exit code: REMAT_INFEASIBLE if nothing fits into the budget. Says on stderr what is wrong. */
int fit_ranks_show(remat_model *model, const model_options *given, const fit_ranks *asked);

#endif
