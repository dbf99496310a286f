/* What must be live at the loss.
 *
 * Every layer runs forward before the loss. The state that its backward uses is live at the loss, or it was saved by
 * another forward later. So each layer chooses a mode and whether its state is live at the loss, which costs memory, or
 * not, which costs one more forward. Beside the states there are the input, x_N (inside a state or by itself), the gradient
 * y_N and the workspace of the loss; all of it must fit the budget. Choosing the cheapest way that fits is a knapsack
 * problem. Its linear relaxation is a lower bound, and is found exactly: for a price of a byte each layer chooses by itself,
 * and the best price is where the bytes of the choices pass the budget. */
#include "plan/chain/lower_bound.h"

#include <remat/plan.h>

#include "base/min_max.h"

__extension__ typedef unsigned __int128 wide;

/* What the choices of one layer, or of all, come to. */
typedef struct loss_choice {
    uint64_t cost, bytes;
} loss_choice;

/* A byte costs price / divisor. */
typedef struct byte_price {
    uint64_t price, divisor;
} byte_price;

static wide priced(byte_price by, loss_choice choice)
{
    return (wide)choice.cost * by.divisor + (wide)choice.bytes * by.price;
}

static void take_cheaper(byte_price by, loss_choice *best, loss_choice choice)
{
    wide new = priced(by, choice), old = priced(by, *best);
    if (new < old || (new == old &&choice.cost + choice.bytes < best->cost + best->bytes))
        *best = choice;
}

static loss_choice choose_layer(const remat_profile *chain, size_t i, byte_price by)
{
    const remat_layer *layer = &chain->layers[i];
    uint64_t forward = UINT64_MAX, output = i + 1 == chain->layer_count ? layer->output_bytes : 0;
    for (size_t k = 0; k < layer->mode_count; k++) {
        const remat_mode *mode = &layer->modes[k];
        forward = remat_min(forward, mode->forward_cost);
        if (mode->holds_output)
            output = remat_min(output, mode->activation_bytes);
    }
    loss_choice best = {layer->modes[0].forward_cost + layer->modes[0].backward_cost + forward, output};
    for (size_t k = 0; k < layer->mode_count; k++) {
        const remat_mode *mode = &layer->modes[k];
        uint64_t cost = mode->forward_cost + mode->backward_cost;
        take_cheaper(by, &best, (loss_choice){cost + forward, output});
        take_cheaper(by, &best, (loss_choice){cost, mode->activation_bytes + (mode->holds_output ? 0 : output)});
    }
    return best;
}

static loss_choice choose_all(const remat_profile *chain, byte_price by)
{
    loss_choice sum = {0, chain->input_bytes + remat_chain_y_bytes(chain, chain->layer_count) +
                              chain->loss_workspace_bytes};
    for (size_t i = 0; i < chain->layer_count; i++) {
        loss_choice layer = choose_layer(chain, i, by);
        sum.cost += layer.cost;
        sum.bytes += layer.bytes;
    }
    return sum;
}

/* Between choices with too many bytes and choices that fit, the price at which both are equally good is the next to try,
 * until no other choices are better there. Figures are below 2^63 and sums of costs below 2^64, so that products fit. */
static uint64_t bound_at_loss(const remat_profile *chain, uint64_t budget)
{
    enum { MOST_TRIES = 60 };
    loss_choice dear = choose_all(chain, (byte_price){1, 0}), cheap = choose_all(chain, (byte_price){0, 1});
    uint64_t bound = cheap.cost;
    for (int t = 0; t < MOST_TRIES && cheap.bytes > budget && dear.bytes <= budget; t++) {
        byte_price by = {dear.cost - cheap.cost, cheap.bytes - dear.bytes};
        loss_choice next = choose_all(chain, by);
        wide value = priced(by, next), paid = (wide)by.price * budget;
        if (value > paid) /* any price gives a bound */
            bound = remat_max(bound, (uint64_t)((value - paid + by.divisor - 1) / by.divisor));
        if (value >= priced(by, cheap))
            break;
        *(next.bytes > budget ? &cheap : &dear) = next;
    }
    return bound;
}

remat_status lower_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t known_cost,
                              uint64_t *bound)
{
    *bound = choose_all(chain, (byte_price){0, 1}).cost;
    if (chain->layer_count == 0 || budget >= chain->most_bytes || *bound >= known_cost)
        return REMAT_OK;
    *bound = bound_at_loss(chain, budget);
    uint64_t by_segments = 0;
    if (*bound < known_cost)
        REMAT_TRY(segment_bound_cost(context, chain, budget, &by_segments));
    if (by_segments != UINT64_MAX) /* else no schedule meets the budget */
        *bound = remat_max(*bound, by_segments);
    return REMAT_OK;
}
