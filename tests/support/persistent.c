#include "support/persistent.h"

#define IMPOSSIBLE UINT64_MAX

static uint64_t x_bytes(const remat_profile *profile, size_t i)
{
    return i == 0 ? remat_profile_input_bytes(profile) : remat_profile_layer(profile, i - 1)->output_bytes;
}

static uint64_t y_bytes(const remat_profile *profile, size_t i)
{
    return i == 0 ? remat_profile_input_gradient_bytes(profile) : x_bytes(profile, i);
}

/* What waits at the right end of i..l: nothing while the loss is to come, else the gradient. */
static uint64_t tail_bytes(const remat_profile *profile, size_t l, bool loss)
{
    return loss ? 0 : y_bytes(profile, l + 1);
}

/* Least cost of the layers i..l in m bytes. x_i is held by the caller and not counted. */
static uint64_t go(const remat_profile *profile, uint64_t m, size_t i, size_t l, bool loss);

static uint64_t save_first(const remat_profile *profile, uint64_t m, size_t i, size_t l, bool loss)
{
    const remat_mode *keep = remat_profile_layer(profile, i)->modes;
    uint64_t a = keep->activation_bytes;
    if (tail_bytes(profile, l, loss) + a + keep->forward_workspace_bytes > m ||
        a + y_bytes(profile, i + 1) + y_bytes(profile, i) + keep->backward_workspace_bytes > m)
        return IMPOSSIBLE;
    uint64_t rest = 0;
    if (i < l)
        rest = go(profile, m - a, i + 1, l, loss);
    else if (loss && a + y_bytes(profile, l + 1) + remat_profile_loss_workspace_bytes(profile) > m)
        rest = IMPOSSIBLE;
    return rest == IMPOSSIBLE ? rest : keep->forward_cost + rest + keep->backward_cost;
}

static uint64_t split(const remat_profile *profile, uint64_t m, size_t i, size_t l, bool loss, size_t j)
{
    uint64_t cost = 0;
    for (size_t t = i; t < j; t++) {
        const remat_mode *keep = remat_profile_layer(profile, t)->modes;
        uint64_t input = t > i ? x_bytes(profile, t) : 0;
        if (tail_bytes(profile, l, loss) + input + x_bytes(profile, t + 1) + keep->forward_workspace_bytes > m)
            return IMPOSSIBLE;
        cost += keep->forward_cost;
    }
    if (x_bytes(profile, j) > m)
        return IMPOSSIBLE;
    uint64_t right = go(profile, m - x_bytes(profile, j), j, l, loss);
    uint64_t left = right == IMPOSSIBLE ? right : go(profile, m, i, j - 1, false);
    return left == IMPOSSIBLE ? left : cost + right + left;
}

static uint64_t go(const remat_profile *profile, uint64_t m, size_t i, size_t l, bool loss)
{
    uint64_t least = save_first(profile, m, i, l, loss);
    for (size_t j = i + 1; j <= l; j++) {
        uint64_t cost = split(profile, m, i, l, loss, j);
        least = cost < least ? cost : least;
    }
    return least;
}

uint64_t persistent_cost(const remat_profile *profile, uint64_t budget)
{
    size_t n = remat_profile_layer_count(profile);
    uint64_t input = remat_profile_input_bytes(profile);
    if (budget < input)
        return IMPOSSIBLE;
    return n == 0 ? 0 : go(profile, budget - input, 0, n - 1, true);
}
