/* What a step of a chain's schedule does to memory. The simulator finds it; those who draw memory read it from there. */
#ifndef REMAT_GRAPH_STEP_EFFECT_H
#define REMAT_GRAPH_STEP_EFFECT_H

#include <remat/schedule.h>

typedef struct step_effect {
    remat_live_tensor made[2], ended[2]; /* live during the step, but for what a drop ends */
    uint32_t made_count, ended_count;
    uint64_t workspace_bytes; /* live during the step only */
    uint64_t cost;
} step_effect;

/* From here on the simulator lists the tensors that a step makes and ends; it is faster without. */
void simulator_list_tensors(remat_simulator *simulator);

/* Of the last step that was played. */
const step_effect *simulator_effect(const remat_simulator *simulator);

#endif
