#include "plan/chain/optimal_tails.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* They cost half as many staircases again, and a long chain has nothing to show for it. */
enum { PAIRS_MOST_LAYERS = 100 };

uint32_t optimal_tail_limit(const optimal_model *model)
{
    uint32_t modes = model->mode_limit;
    return TAIL_SAVED + modes + (model->pairs ? modes * modes : 0);
}

bool optimal_tail_is_pair(const optimal_model *model, uint32_t tail)
{
    return tail >= TAIL_SAVED + model->mode_limit;
}

uint32_t optimal_tail_first_mode(const optimal_model *model, uint32_t tail)
{
    uint32_t modes = model->mode_limit;
    return optimal_tail_is_pair(model, tail) ? (tail - TAIL_SAVED - modes) / modes : tail - TAIL_SAVED;
}

uint32_t optimal_tail_second_mode(const optimal_model *model, uint32_t tail)
{
    return (tail - TAIL_SAVED - model->mode_limit) % model->mode_limit;
}

/* Two saved layers wait together only where that can pay: where s_k holds x_{k+1}, backward k+1 would free no bytes
 * and so need not come first; where it does not, saving k needs more workspace than a plain forward and so comes early.
 */
static bool pair_exists(const optimal_model *model, size_t k, uint32_t q, uint32_t r)
{
    if (k + 1 >= model->n)
        return false;
    const remat_mode *first = optimal_model_mode(model, k, q), *second = optimal_model_mode(model, k + 1, r);
    if (!first || !second)
        return false;
    if (!first->holds_output)
        return first->forward_workspace_bytes > model->chain->layers[k].modes[0].forward_workspace_bytes;
    return second->activation_bytes + model->x[k + 2] < model->x[k + 1];
}

bool optimal_tail_exists(const optimal_model *model, size_t behind, uint32_t tail)
{
    if (tail == TAIL_GRADIENT)
        return true;
    if (behind == model->n)
        return tail == TAIL_LOSS;
    if (optimal_tail_is_pair(model, tail))
        return pair_exists(model, behind, optimal_tail_first_mode(model, tail), optimal_tail_second_mode(model, tail));
    return optimal_model_mode(model, behind, tail - TAIL_SAVED) != NULL;
}

bool optimal_tails_have_pairs(const optimal_model *model)
{
    uint32_t modes = model->mode_limit;
    if (model->n > PAIRS_MOST_LAYERS)
        return false;
    for (size_t k = 1; k + 1 < model->n; k++)
        for (uint32_t q = 0; q < modes * modes; q++)
            if (pair_exists(model, k, q / modes, q % modes))
                return true;
    return false;
}

uint64_t optimal_tail_bytes(const optimal_model *model, size_t behind, uint32_t tail)
{
    if (tail == TAIL_GRADIENT)
        return model->y[behind];
    if (behind == model->n)
        return 0;
    uint64_t first = optimal_model_mode(model, behind, optimal_tail_first_mode(model, tail))->activation_bytes;
    if (!optimal_tail_is_pair(model, tail))
        return first + model->y[behind + 1];
    return first + optimal_model_mode(model, behind + 1, optimal_tail_second_mode(model, tail))->activation_bytes +
           model->y[behind + 2];
}

/* backward behind+1, then backward behind; where s_behind does not hold x_{behind+1}, a plain forward makes it again.
 */
static void pair_step(const optimal_model *model, size_t behind, uint32_t tail, uint64_t *memory, uint64_t *cost)
{
    const remat_mode *first = optimal_model_mode(model, behind, optimal_tail_first_mode(model, tail));
    const remat_mode *second = optimal_model_mode(model, behind + 1, optimal_tail_second_mode(model, tail));
    const remat_mode *plain = &model->chain->layers[behind].modes[0];
    uint64_t held = optimal_tail_bytes(model, behind, tail), middle = model->y[behind + 1];
    *memory = 0;
    *cost = first->backward_cost + second->backward_cost;
    if (!first->holds_output) {
        held += model->x[behind + 1];
        *memory = held + plain->forward_workspace_bytes;
        *cost += plain->forward_cost;
    }
    *memory = larger(*memory, held + middle + second->backward_workspace_bytes);
    *memory = larger(*memory, first->activation_bytes + middle + model->y[behind] + first->backward_workspace_bytes);
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
    if (optimal_tail_is_pair(model, tail)) {
        pair_step(model, behind, tail, memory, cost);
        return;
    }
    const remat_mode *mode = optimal_model_mode(model, behind, tail - TAIL_SAVED);
    *memory += mode->activation_bytes + model->y[behind + 1] + mode->backward_workspace_bytes;
    *cost = mode->backward_cost;
}
