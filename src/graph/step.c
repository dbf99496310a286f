#include <remat/schedule.h>

#include "graph/chain.h"

static const char *mode_name(const remat_profile *chain, remat_step step)
{
    if (step.layer >= chain->layer_count || step.save >= chain->layers[step.layer].mode_count)
        return "?";
    return chain->layers[step.layer].modes[step.save].name;
}

const char *remat_step_print(const remat_profile *profile, remat_step step, char text[REMAT_STEP_TEXT])
{
    unsigned layer = step.layer;
    switch ((remat_op)step.op) {
    case REMAT_FORWARD:
        if (step.save == REMAT_NO_SAVE)
            snprintf(text, REMAT_STEP_TEXT, "forward %u", layer);
        else
            snprintf(text, REMAT_STEP_TEXT, "forward %u, save %.60s", layer, mode_name(profile, step));
        return text;
    case REMAT_LOSS: snprintf(text, REMAT_STEP_TEXT, "loss"); return text;
    case REMAT_BACKWARD: snprintf(text, REMAT_STEP_TEXT, "backward %u", layer); return text;
    case REMAT_DROP_X: snprintf(text, REMAT_STEP_TEXT, "drop x %u", layer); return text;
    case REMAT_DROP_STATE: snprintf(text, REMAT_STEP_TEXT, "drop s %u", layer); return text;
    }
    snprintf(text, REMAT_STEP_TEXT, "unknown step %u", step.op);
    return text;
}
