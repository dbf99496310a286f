#include "shard_option.h"

#include <string.h>

#include "shown.h"

const char *const shard_names[SHARD_STAGES] = {[REMAT_SHARD_NONE] = "none",
                                               [REMAT_SHARD_OPTIMIZER] = "optimizer",
                                               [REMAT_SHARD_GRADIENTS] = "gradients",
                                               [REMAT_SHARD_WEIGHTS] = "weights"};

remat_shard shard_parse(struct argp_state *state, const char *text)
{
    for (int i = 0; i < SHARD_STAGES; i++)
        if (strcmp(text, shard_names[i]) == 0)
            return (remat_shard)i;
    argp_error(state, "--shard takes none, optimizer, gradients or weights, not '%s'", shown(text));
    return REMAT_SHARD_NONE;
}

bool reduce_parse(struct argp_state *state, const char *text)
{
    if (strcmp(text, "fixed") != 0 && strcmp(text, "fast") != 0)
        argp_error(state, "--reduce takes 'fixed' or 'fast', not '%s'", shown(text));
    return strcmp(text, "fast") == 0;
}
