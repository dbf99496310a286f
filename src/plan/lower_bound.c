#include "plan/lower_bound.h"

/* Every layer runs forward, saving, and backward at least once, in one of its modes. */
uint64_t remat_lower_bound_cost(const remat_profile *chain, uint64_t budget_bytes)
{
    (void)budget_bytes;
    uint64_t bound = 0;
    for (size_t i = 0; i < chain->layer_count; i++) {
        uint64_t least = UINT64_MAX;
        for (size_t k = 0; k < chain->layers[i].mode_count; k++) {
            const remat_mode *mode = &chain->layers[i].modes[k];
            uint64_t both = mode->forward_cost + mode->backward_cost;
            least = both < least ? both : least;
        }
        bound += least;
    }
    return bound;
}
