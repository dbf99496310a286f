#include "plan/chain/lower_bound_prices.h"

#include <remat/schedule.h>

#include "base/alloc.h"

#define MOST_MASKS (1u << (LOWER_BOUND_MOST_MOMENTS - 1))
#define NO_WAY     (~(wide)0)

typedef lower_bound_wide wide;

/* Of the kinds of forward that fit into the budget at all. */
typedef struct lower_bound_layer {
    uint64_t least_forward; /* the cost of the cheapest */
    uint64_t readable;      /* the fewest bytes from which the output can be read */
    size_t modes_at;        /* where its modes are in `usable` */
} lower_bound_layer;

/* ---- preparing ---- */

static unsigned bits_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* Chooses the units. With b bits of bytes and c bits of costs (every layer may run once for each moment, and once
 * more): costs come to at most 2^(c + scale) <= 2^118 and all bytes at the highest price to 2^120 a moment, so that
 * sums stay below 2^123. Within that, prices should be fine enough to tell costs apart (scale > b), and where that
 * leaves room as high as all costs for one byte (scale < 120 - b - c). */
static void choose_units(lower_bound_prices *prices)
{
    unsigned b = bits_of(prices->chain->most_bytes), c = bits_of(prices->chain->most_cost) + 3;
    unsigned fine = b + 2 < 118 - c ? b + 2 : 118 - c;
    unsigned high = b + c < 120 ? 120 - b - c : 0;
    prices->scale = high < fine ? fine : high < 118 - c ? high : 118 - c;
    prices->most_price = ((wide)1 << 120) >> b;
}

/* Takes note of a kind of forward after which x_{i+1} can be read from `readable` bytes. */
static void allow_forward(lower_bound_layer *layer, const remat_mode *mode, uint64_t readable)
{
    if (mode->forward_cost < layer->least_forward)
        layer->least_forward = mode->forward_cost;
    if (readable < layer->readable)
        layer->readable = readable;
}

/* What layer i can do within the budget: every step has the input beside it, and x_i in the fewest bytes. A mode whose
 * forward or backward does not fit is never used. */
static void find_usable(lower_bound_prices *prices, size_t i, size_t modes_at)
{
    const remat_profile *chain = prices->chain;
    const remat_layer *layer = &chain->layers[i];
    lower_bound_layer found = {UINT64_MAX, UINT64_MAX, modes_at};
    uint64_t beside = chain->input_bytes + (i > 0 ? prices->layers[i - 1].readable : 0), out = layer->output_bytes;
    uint64_t gradients = remat_chain_y_bytes(chain, i) + remat_chain_y_bytes(chain, i + 1);
    uint8_t *usable = prices->usable + modes_at;
    bool any = false;
    if (beside + out + layer->modes[REMAT_KEEP].forward_workspace_bytes <= prices->budget)
        allow_forward(&found, &layer->modes[REMAT_KEEP], out);
    for (size_t k = 0; k < layer->mode_count; k++) {
        const remat_mode *mode = &layer->modes[k];
        uint64_t added = mode->activation_bytes + (mode->holds_output ? 0 : out);
        bool forward_fits = beside + added + mode->forward_workspace_bytes <= prices->budget;
        if (forward_fits)
            allow_forward(&found, mode, mode->holds_output ? mode->activation_bytes : out);
        usable[k] = forward_fits &&
                    beside + gradients + mode->activation_bytes + mode->backward_workspace_bytes <= prices->budget;
        any |= usable[k];
    }
    prices->feasible &= any;
    prices->layers[i] = found;
}

remat_status lower_bound_prices_init(remat_context *context, const remat_profile *chain, uint64_t budget,
                                     lower_bound_prices *prices)
{
    *prices = (lower_bound_prices){.chain = chain, .budget = budget, .moments = 1, .at = {chain->layer_count}};
    for (size_t i = 0; i < chain->layer_count; i++)
        prices->mode_count += chain->layers[i].mode_count;
    prices->layers = remat_alloc(context, chain->layer_count, sizeof *prices->layers);
    prices->usable = prices->layers ? remat_alloc(context, prices->mode_count, 1) : NULL;
    if (!prices->usable) {
        lower_bound_prices_clear(context, prices);
        return REMAT_NO_MEMORY;
    }
    prices->feasible = true;
    size_t modes_at = 0;
    for (size_t i = 0; i < chain->layer_count && prices->feasible; i++) {
        find_usable(prices, i, modes_at);
        modes_at += chain->layers[i].mode_count;
    }
    choose_units(prices);
    return REMAT_OK;
}

void lower_bound_prices_clear(remat_context *context, lower_bound_prices *prices)
{
    remat_release(context, prices->layers, prices->chain->layer_count, sizeof *prices->layers);
    remat_release(context, prices->usable, prices->mode_count, 1);
    prices->layers = NULL;
    prices->usable = NULL;
}

/* ---- one layer ---- */

/* A sum over layers: costs with priced bytes, and the bytes at each moment. */
typedef struct partial_sum {
    wide cost;
    uint64_t bytes[LOWER_BOUND_MOST_MOMENTS];
} partial_sum;

/* The prices, and for every set of moments the price of a byte that is there at all of them. */
typedef struct pricing {
    const lower_bound_prices *prices;
    wide of_moments[1u << LOWER_BOUND_MOST_MOMENTS];
} pricing;

/* What is given for layer i. Bits stand for gaps and moments. */
typedef struct layer_case {
    size_t i;
    size_t last;     /* the last moment before the start of its backward */
    bool own_moment; /* the start of its backward is the next moment */
    uint32_t forced; /* the gaps in which b makes it run, */
    unsigned forced_count;
    uint32_t output; /* the moments at which x_{i+1} can be read */
} layer_case;

/* One way to save the layer: the mode, and the first moment at which its state is there (last + 1: none). */
typedef struct way {
    const remat_mode *mode;
    size_t first;
} way;

/* The moments at which the state is there, before the layer's own. */
static uint32_t held_at(const layer_case *given, way how)
{
    return ((uint32_t)2 << given->last) - ((uint32_t)1 << how.first);
}

/* The moments at which x_{i+1} is there besides the state. */
static uint32_t alone_at(const layer_case *given, way how)
{
    return how.mode->holds_output ? given->output & ~held_at(given, how) : given->output;
}

static wide way_cost(const pricing *by, const layer_case *given, way how)
{
    const remat_mode *mode = how.mode;
    const lower_bound_layer *least = &by->prices->layers[given->i];
    uint32_t held = held_at(given, how);
    if (mode->holds_output && (given->forced & held))
        return NO_WAY; /* d */
    bool own_run = how.first > 0 && !(given->forced >> (how.first - 1) & 1);
    unsigned others = given->forced_count + own_run;
    wide cost = (wide)(mode->forward_cost + mode->backward_cost) + (wide)least->least_forward * others;
    cost = (cost << by->prices->scale) + by->of_moments[alone_at(given, how)] * least->readable;
    if (!given->own_moment)
        return cost + by->of_moments[held] * mode->activation_bytes;
    uint32_t own = (uint32_t)2 << given->last;
    return cost + by->of_moments[held | own] * mode->activation_bytes +
           by->of_moments[own] * mode->backward_workspace_bytes;
}

/* The bytes of the way at each moment. */
static void way_bytes(const pricing *by, const layer_case *given, way how, uint64_t *bytes)
{
    uint32_t held = held_at(given, how), alone = alone_at(given, how);
    for (size_t r = 0; r < by->prices->moments; r++) {
        bytes[r] = (held >> r & 1 ? how.mode->activation_bytes : 0) +
                   (alone >> r & 1 ? by->prices->layers[given->i].readable : 0);
        if (given->own_moment && r == given->last + 1)
            bytes[r] += how.mode->activation_bytes + how.mode->backward_workspace_bytes;
    }
}

static partial_sum cheapest_way(const pricing *by, const layer_case *given)
{
    const remat_layer *layer = &by->prices->chain->layers[given->i];
    const uint8_t *usable = by->prices->usable + by->prices->layers[given->i].modes_at;
    partial_sum best = {.cost = NO_WAY};
    way best_way = {0};
    for (size_t k = 0; k < layer->mode_count; k++)
        for (size_t first = 0; usable[k] && first <= given->last + 1; first++) {
            way how = {&layer->modes[k], first};
            wide cost = way_cost(by, given, how);
            if (cost < best.cost) {
                best.cost = cost;
                best_way = how;
            }
        }
    if (best.cost != NO_WAY)
        way_bytes(by, given, best_way, best.bytes);
    return best;
}

/* ---- the scan ---- */

static void add_layer(partial_sum *to, const partial_sum *from, const partial_sum *layer)
{
    if (from->cost + layer->cost >= to->cost)
        return;
    to->cost = from->cost + layer->cost;
    for (size_t r = 0; r < LOWER_BOUND_MOST_MOMENTS; r++)
        to->bytes[r] = from->bytes[r] + layer->bytes[r];
}

/* What is known of layer i before any choice: `gaps` can force it to run, and those of `closing` end right of it. */
typedef struct layer_place {
    layer_case given;
    uint32_t gaps, closing, needed;
} layer_place;

static layer_place place_of(const lower_bound_prices *prices, size_t i)
{
    layer_place place = {.given = {.i = i}};
    layer_case *given = &place.given;
    while (given->last + 1 < prices->moments && prices->at[given->last + 1] > i)
        given->last++;
    given->own_moment = given->last + 1 < prices->moments && prices->at[given->last + 1] == i;
    place.gaps = ((uint32_t)1 << given->last) - 1;
    for (size_t r = 0; r < given->last; r++)
        if (prices->at[r + 1] == i + 1)
            place.closing |= (uint32_t)1 << r;
    if (prices->at[given->last] == i + 1)
        place.needed = (uint32_t)1 << given->last;
    return place;
}

/* Adds layer i to each sum. Bit r of a mask: p_r <= i, so that the layer runs in gap r. Passing p_r = i + 1 switches
 * the bit on behind the layer; at the end of the gap it has to be on. */
static void scan_layer(const pricing *by, size_t i, const partial_sum *from, partial_sum *to)
{
    layer_place place = place_of(by->prices, i);
    for (uint32_t mask = 0; mask < 1u << (by->prices->moments - 1); mask++)
        to[mask].cost = NO_WAY;
    for (uint32_t mask = 0; mask <= place.gaps; mask++) {
        if (from[mask].cost == NO_WAY)
            continue;
        uint32_t off = place.gaps & ~mask, passing = off;
        place.given.forced = mask;
        place.given.forced_count = (unsigned)__builtin_popcount(mask);
        do { /* over the subsets of `off` */
            if ((place.closing & off & ~passing) == 0) {
                place.given.output = passing | place.needed;
                partial_sum layer = cheapest_way(by, &place.given);
                if (layer.cost != NO_WAY)
                    add_layer(&to[(mask | passing) & ~place.closing], &from[mask], &layer);
            }
            passing = (passing - 1) & off;
        } while (passing != off);
    }
}

/* What is there at moment r whatever is chosen. */
static uint64_t fixed_bytes(const lower_bound_prices *prices, size_t r)
{
    const remat_profile *chain = prices->chain;
    size_t t = prices->at[r];
    if (r == 0)
        return chain->input_bytes + remat_chain_y_bytes(chain, t) + chain->loss_workspace_bytes;
    return chain->input_bytes + remat_chain_y_bytes(chain, t + 1) + remat_chain_y_bytes(chain, t);
}

lower_bound_value lower_bound_prices_value(const lower_bound_prices *prices)
{
    pricing by = {.prices = prices};
    for (uint32_t set = 1; set < 1u << prices->moments; set++)
        by.of_moments[set] = by.of_moments[set & (set - 1)] + prices->price[__builtin_ctz(set)];
    partial_sum sums[2][MOST_MASKS] = {0}; /* at first any p_r may be 0 */
    size_t n = prices->chain->layer_count;
    for (size_t i = 0; i < n; i++)
        scan_layer(&by, i, sums[i & 1], sums[(i + 1) & 1]);
    const partial_sum *all = &sums[n & 1][0];
    lower_bound_value value = {.scaled = (__int128)all->cost};
    for (size_t r = 0; r < prices->moments; r++) {
        uint64_t fixed = fixed_bytes(prices, r);
        value.slope[r] = (int64_t)(all->bytes[r] + fixed) - (int64_t)prices->budget;
        value.scaled += (__int128)(prices->price[r] * fixed) - (__int128)(prices->price[r] * prices->budget);
    }
    return value;
}
