#include "plan/chain/optimal_tails.h"

uint32_t optimal_tail_limit(const optimal_model *model)
{
    return TAIL_SAVED + model->mode_limit;
}

bool optimal_tail_exists(const optimal_model *model, size_t behind, uint32_t tail)
{
    if (tail == TAIL_GRADIENT)
        return true;
    if (behind == model->n)
        return tail == TAIL_LOSS;
    return optimal_model_mode(model, behind, tail - TAIL_SAVED) != NULL;
}

uint64_t optimal_tail_bytes(const optimal_model *model, size_t behind, uint32_t tail)
{
    if (tail == TAIL_GRADIENT)
        return model->y[behind];
    if (behind == model->n)
        return 0;
    return optimal_model_mode(model, behind, tail - TAIL_SAVED)->activation_bytes + model->y[behind + 1];
}

void optimal_tail_step(const optimal_model *model, size_t behind, uint32_t tail, uint64_t *memory, uint64_t *cost)
{
    *memory = model->y[behind];
    *cost = 0;
    if (tail == TAIL_GRADIENT)
        return;
    if (behind == model->n) {
        *memory += model->chain->loss_workspace_bytes;
        return;
    }
    const remat_mode *mode = optimal_model_mode(model, behind, tail - TAIL_SAVED);
    *memory += mode->activation_bytes + model->y[behind + 1] + mode->backward_workspace_bytes;
    *cost = mode->backward_cost;
}
