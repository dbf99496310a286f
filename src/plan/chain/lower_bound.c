#include "plan/chain/lower_bound.h"

#include <remat/plan.h>

#include "base/checked.h"
#include "plan/chain/lower_bound_prices.h"

typedef lower_bound_wide wide;

/* The best found so far, and when to stop. All scaled as the prices are. */
typedef struct hunt {
    lower_bound_prices prices;
    __int128 best;
    __int128 target; /* a cost that is known to be possible, or where to aim */
    bool target_known;
} hunt;

static bool done(const hunt *h)
{
    return h->target_known && h->best >= h->target;
}

static lower_bound_value evaluate(hunt *h)
{
    lower_bound_value value = lower_bound_prices_value(&h->prices);
    if (value.scaled > h->best)
        h->best = value.scaled;
    return value;
}

/* Where to aim: at the known cost, or a little above the best. Values stay below 2^123, so a target above all that the
 * units allow is cut to 2^120. */
static void set_target(hunt *h, uint64_t known_cost)
{
    h->target_known = known_cost != UINT64_MAX;
    wide aim = h->target_known ? known_cost : (wide)h->prices.chain->most_cost / 50 + 1;
    wide most = (wide)1 << 120;
    aim = aim > most >> h->prices.scale ? most : aim << h->prices.scale;
    if (!h->target_known)
        aim += (wide)h->best;
    h->target = (__int128)aim;
}

/* ---- the loss alone ---- */

/* The bound at one price, and its tangent there. */
typedef struct tangent {
    __int128 value;
    wide price;
    int64_t slope;
} tangent;

static tangent tangent_at(hunt *h, wide price)
{
    h->prices.price[0] = price;
    lower_bound_value value = evaluate(h);
    return (tangent){value.scaled, price, value.slope[0]};
}

/* The value is concave in the price: the best lies between a rising and a falling tangent, and where they meet is the
 * next to try. Returns the best price. */
static wide price_the_loss(hunt *h, size_t most_tries)
{
    tangent rising = tangent_at(h, 0);
    if (rising.slope <= 0)
        return 0;
    tangent falling = tangent_at(h, h->prices.most_price);
    for (size_t t = 0; t < most_tries && falling.slope <= 0 && !done(h); t++) {
        __int128 below = (__int128)(falling.price - rising.price) * -(__int128)falling.slope;
        __int128 ahead = (falling.value - rising.value + below) / ((__int128)rising.slope - falling.slope);
        wide meet = rising.price + (wide)ahead;
        if (ahead <= 0 || meet >= falling.price)
            break;
        tangent next = tangent_at(h, meet);
        if (next.slope > 0)
            rising = next;
        else
            falling = next;
    }
    return rising.value > falling.value ? rising.price : falling.price;
}

/* ---- several moments ---- */

static unsigned bits_of(wide value)
{
    uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;
    return high ? 128 - (unsigned)__builtin_clzll(high) : low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

/* amount * factor / divisor * 2^-shift, to some 50 bits, at most `most`; factor <= 2^24. */
static wide scaled_part(wide amount, uint64_t factor, uint64_t divisor, int shift, wide most)
{
    int excess = bits_of(amount) > 60 ? (int)bits_of(amount) - 60 : 0;
    wide part = ((amount >> excess) * factor << 40) / divisor;
    int up = excess - 40 - shift;
    if (up <= 0)
        part = up > -128 ? part >> -up : 0;
    else
        part = (int)bits_of(part) + up < 126 ? part << up : most;
    return part < most ? part : most;
}

/* The slopes that can still move their price, shifted right so that none has more than 24 bits. */
typedef struct direction {
    int64_t slope[LOWER_BOUND_MOST_MOMENTS];
    uint64_t norm; /* the sum of their squares */
    int shift;
} direction;

static direction direction_of(const lower_bound_prices *prices, const lower_bound_value *at)
{
    direction to = {0};
    uint64_t longest = 0;
    for (size_t r = 0; r < prices->moments; r++) {
        to.slope[r] = at->slope[r] > 0 || prices->price[r] > 0 ? at->slope[r] : 0;
        uint64_t length = (uint64_t)(to.slope[r] < 0 ? -to.slope[r] : to.slope[r]);
        longest = length > longest ? length : longest;
    }
    to.shift = bits_of(longest) > 24 ? (int)bits_of(longest) - 24 : 0;
    for (size_t r = 0; r < prices->moments; r++) {
        to.slope[r] /= (int64_t)1 << to.shift;
        to.norm += (uint64_t)(to.slope[r] * to.slope[r]);
    }
    return to;
}

/* Moves the prices up the slopes as far as would reach the target if the slopes stayed as they are (Polyak's step),
 * shortened `halvings` times. */
static void move_prices(lower_bound_prices *prices, const direction *to, wide missing, int halvings)
{
    for (size_t r = 0; r < prices->moments; r++) {
        uint64_t length = (uint64_t)(to->slope[r] < 0 ? -to->slope[r] : to->slope[r]);
        wide part = scaled_part(missing, length, to->norm, to->shift + halvings, prices->most_price);
        if (to->slope[r] < 0)
            prices->price[r] -= part < prices->price[r] ? part : prices->price[r];
        else
            prices->price[r] +=
                part < prices->most_price - prices->price[r] ? part : prices->most_price - prices->price[r];
    }
}

/* Improves the prices of the moments as they are. */
static void climb(hunt *h, size_t steps)
{
    enum { PATIENCE = 5 };
    lower_bound_prices *prices = &h->prices, best_prices = *prices;
    __int128 best = 0;
    int halvings = 0, stale = 0;
    for (size_t s = 0; s < steps; s++) {
        lower_bound_value value = evaluate(h);
        if (value.scaled > best) {
            best = value.scaled;
            best_prices = *prices;
            stale = 0;
        } else if (++stale == PATIENCE) {
            halvings++;
            stale = 0;
            *prices = best_prices;
            continue;
        }
        direction to = direction_of(prices, &value);
        if (to.norm == 0 || done(h))
            return;
        if (value.scaled >= h->target)
            set_target(h, UINT64_MAX);
        move_prices(prices, &to, (wide)(h->target - value.scaled), halvings);
    }
}

/* The next set of `count` rising numbers below `grid`. */
static bool next_set(size_t *pick, size_t count, size_t grid)
{
    for (size_t r = count; r-- > 0;) {
        if (pick[r] + (count - r) < grid) {
            pick[r]++;
            for (size_t s = r + 1; s < count; s++)
                pick[s] = pick[s - 1] + 1;
            return true;
        }
    }
    return false;
}

/* How many sets of `count` numbers below `grid` there are. */
static size_t set_count(size_t grid, size_t count)
{
    size_t product = 1;
    for (size_t r = 0; r < count; r++)
        product = product * (grid - r) / (r + 1);
    return product;
}

/* Tries sets of `count` backwards as moments besides the loss, evenly spread where there are too many. */
static void try_moments(hunt *h, size_t count, size_t most_sets, size_t steps, wide loss_price)
{
    enum { FINEST_GRID = 200 };
    size_t n = h->prices.chain->layer_count, grid = n < FINEST_GRID ? n : FINEST_GRID;
    size_t pick[LOWER_BOUND_MOST_MOMENTS] = {0, 1, 2, 3};
    while (grid > count && set_count(grid, count) > most_sets)
        grid--;
    if (grid < count)
        return;
    h->prices.moments = count + 1;
    do {
        for (size_t r = 0; r < count; r++) {
            h->prices.at[r + 1] = n - 1 - pick[r] * n / grid;
            h->prices.price[r + 1] = 0;
        }
        h->prices.price[0] = loss_price;
        climb(h, steps);
    } while (!done(h) && next_set(pick, count, grid));
}

/* ---- the whole ---- */

/* Every layer runs forward, saving, and backward at least once, in one of its modes. */
static uint64_t cost_without_budget(const remat_profile *chain)
{
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

/* The work there is for each number of moments, in ways tried (some 4 ns each); and what one evaluation takes of it. */
static uint64_t work_allowed(uint64_t layers)
{
    return layers < 1000 ? 300000 + 14000 * layers : layers < 10000 ? 10000000 + 4000 * layers : 50000000;
}

static uint64_t work_of_evaluation(const remat_profile *chain, size_t moments)
{
    uint64_t ways = moments + 1;
    for (size_t i = 0; i < chain->layer_count; i++)
        ways += chain->layers[i].mode_count * (moments + 1);
    for (size_t r = 1; r < moments; r++)
        ways *= 3;
    return ways;
}

/* On long chains more moments rarely help, and help less the more there are. */
static void hunt_bound(hunt *h, uint64_t known_cost)
{
    enum { LOSS_TRIES = 40, STEPS = 30, FEWEST_SETS = 4, SMALL_GAIN = 2000, SHORT_CHAIN = 64 };
    const remat_profile *chain = h->prices.chain;
    set_target(h, known_cost);
    wide loss_price = price_the_loss(h, LOSS_TRIES);
    for (size_t count = 1; count < LOWER_BOUND_MOST_MOMENTS && !done(h); count++) {
        uint64_t sets = work_allowed(chain->layer_count) / (STEPS * work_of_evaluation(chain, count + 1));
        if (sets < FEWEST_SETS)
            break;
        __int128 before = h->best;
        set_target(h, known_cost);
        try_moments(h, count, (size_t)sets, STEPS, loss_price);
        if (chain->layer_count > SHORT_CHAIN && h->best - before <= before / SMALL_GAIN)
            break;
    }
}

/* The next cost from the best value up. */
static uint64_t cost_of(const hunt *h)
{
    if (h->best <= 0)
        return 0;
    wide unit = (wide)1 << h->prices.scale;
    wide cost = ((wide)h->best + unit - 1) >> h->prices.scale;
    return cost < REMAT_LIMIT ? (uint64_t)cost : REMAT_LIMIT - 1;
}

remat_status lower_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t known_cost,
                              uint64_t *bound)
{
    *bound = cost_without_budget(chain);
    if (chain->layer_count == 0 || budget >= chain->most_bytes || *bound >= known_cost)
        return REMAT_OK;
    hunt h = {0};
    REMAT_TRY(lower_bound_prices_init(context, chain, budget, &h.prices));
    if (h.prices.feasible)
        hunt_bound(&h, known_cost);
    lower_bound_prices_clear(context, &h.prices);
    uint64_t found = cost_of(&h);
    found = found < known_cost ? found : known_cost;
    *bound = found > *bound ? found : *bound;
    return REMAT_OK;
}
