/* The lower bound for given prices of memory: Lagrange's relaxation of the budget.
 *
 * At a few chosen moments of a schedule every live byte is charged a price, and the budget times the prices is taken
 * off again. A schedule within the budget does not get dearer by that. So the least priced cost, over a set of choices
 * that covers every legal schedule, is a lower bound for any prices.
 *
 * Moment 0 is the loss, moment r > 0 the start of backward t_r, N > t_1 > t_2 > ... >= 0; gap r lies between the
 * moments r and r+1. Let p_r be the last position up to t_{r+1} whose x can be read at moment r; x_0 always can. In
 * every legal schedule:
 *
 *  a. Every layer runs before the loss.
 *  b. x of t_{r+1} is read at moment r+1. It was made after moment r from x of p_r or from something left of that, so
 *     every layer i with p_r <= i < t_{r+1} runs in gap r.
 *  c. The s_i that backward i uses is there from some moment h on, and was saved in gap h-1 by a run of its own unless
 *     b gave one there already (before the loss for h = 0); or it is there at no moment, and was saved after the last.
 *  d. Where s_i holds its output and is there at moment r, x_{i+1} can be read, so p_r > i: b forces no run of layer i
 *     in gap r.
 *
 * So a schedule costs at least the sum over the layers of what their forced runs cost, the saving one and the backward
 * in the mode used and the others at the cheapest. And at moment r there are at least: the input, two gradients, the
 * states that c says are there, x of p_r and x of t_r in the fewest bytes from which they can be read, and the
 * workspace. Given where the p_r are, each layer chooses its mode and its h for itself. So a scan from left to right
 * finds the least; its state is the set of gaps whose p_r was passed. */
#ifndef REMAT_PLAN_CHAIN_LOWER_BOUND_PRICES_H
#define REMAT_PLAN_CHAIN_LOWER_BOUND_PRICES_H

#include "graph/chain.h"

#define LOWER_BOUND_MOST_MOMENTS 4

typedef unsigned __int128 lower_bound_wide;

typedef struct lower_bound_prices {
    const remat_profile *chain;
    uint64_t budget; /* below chain->most_bytes */
    bool feasible;   /* false: some layer cannot run within the budget, and the rest means nothing */
    struct lower_bound_layer *layers;
    uint8_t *usable; /* for each mode of each layer whether it fits into the budget */
    size_t mode_count;
    unsigned scale;              /* prices and values are in units of 2^-scale of a cost */
    lower_bound_wide most_price; /* below it nothing overflows */
    size_t moments;
    size_t at[LOWER_BOUND_MOST_MOMENTS]; /* t_r; at[0] is N */
    lower_bound_wide price[LOWER_BOUND_MOST_MOMENTS];
} lower_bound_prices;

/* The bound at one set of prices (of a feasible budget), exact, and how it grows with each price: by the bytes over the
 * budget. */
typedef struct lower_bound_value {
    __int128 scaled;
    int64_t slope[LOWER_BOUND_MOST_MOMENTS];
} lower_bound_value;

/* One moment, the loss, at price 0. */
remat_status lower_bound_prices_init(remat_context *context, const remat_profile *chain, uint64_t budget,
                                     lower_bound_prices *prices);
void lower_bound_prices_clear(remat_context *context, lower_bound_prices *prices);

lower_bound_value lower_bound_prices_value(const lower_bound_prices *prices);

#endif
