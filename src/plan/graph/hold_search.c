#include "plan/graph/hold_search.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/parallel.h"
#include "plan/graph/graph_bound.h"
#include "plan/graph/hold_annealer.h"

/* Limits from the peak of everything held to the lowest, or back, each annealed for a part of the effort. */
typedef struct limit_sweep {
    bool down;
    bool firm; /* nothing goes above a limit */
    /* limits: near the lowest peak, where the cost rises steeply; near the top; or all over, in round percentages of it */
    enum { EVEN, LOW, HIGH, ROUND } most;
    uint32_t limits;
    uint64_t share, heat; /* thousandths of the effort; millionths of the cost */
} limit_sweep;
static const limit_sweep sweeps[] = {{true, false, EVEN, 9, 200, 3000}, {false, true, LOW, 8, 200, 10000},
                                     {true, false, EVEN, 12, 100, 700}, {false, true, LOW, 12, 150, 3000},
                                     {true, false, HIGH, 24, 50, 2000}, {false, true, ROUND, 20, 150, 1000}};
enum { SWEEPS = sizeof sweeps / sizeof *sweeps, MOST_LIMITS = 24 };
/* Thousandths of the effort that look for the lowest peak, where the cost rises most, and for what is left to gain in each
 * bin. What comes behind the sweeps only adds to what they found. */
enum {
    LOWEST_SHARE = 100,
    RISE_SHARE = 300,
    CUT_SHARE = 250,
    STEEP_SHARE = 150,
    SWAP_SHARE = 100,
    BINS_SHARE = 200,
    POLISH_SHARE = 1500
};
/* Limits for which a bound of the cost is found. */
enum { BOUNDS = 16 };

uint64_t hold_search_effort(const hold_graph *g)
{
    const uint64_t gaps = g->gap_count, more = g->position_count > 2500 ? g->position_count - 2500 : 0;
    const uint64_t full = 320000000 + 40000 * more, most = 1500000000;
    return remat_min(1000000 + 6000 * gaps * gaps, remat_min(full, most));
}

/* ---- what all annealers need ---- */

remat_status annealer_adopt(hold_annealer *h, const uint32_t *from)
{
    for (uint32_t i = 0; i < h->g->gap_count; i++)
        hold_state_note(&h->state, i, from[i]);
    return hold_state_settle(&h->state);
}

remat_status annealer_hold_all(hold_annealer *h)
{
    for (uint32_t i = 0; i < h->g->gap_count; i++)
        hold_state_note(&h->state, i, h->g->gaps[i].begin);
    return hold_state_settle(&h->state);
}

remat_status annealer_drop_all(hold_annealer *h)
{
    for (uint32_t i = 0; i < h->g->gap_count; i++)
        hold_state_note(&h->state, i, h->g->gaps[i].end);
    return hold_state_settle(&h->state);
}

/* A schedule may cost less than 2^63. */
remat_status annealer_keep(hold_annealer *h, uint64_t peak)
{
    if (h->state.cost > INT64_MAX)
        return REMAT_OK;
    return hold_bins_keep(&h->bins, &h->state, peak);
}

void annealer_measure(hold_annealer *h, hold_measure *m)
{
    m->peak = hold_state_peak(&h->state, m->limit, h->shift, &m->over, &m->position);
    h->state.work += h->g->position_count / 4 + 16;
}

uint64_t annealer_bound(const hold_annealer *h, uint64_t limit)
{
    const uint64_t range = h->bins.top - h->bins.bottom + 1, above = limit - remat_min(limit, h->bins.bottom);
    return h->bounds[(size_t)((unsigned __int128)above * BOUNDS / range)];
}

remat_status annealer_price(hold_annealer *h, uint64_t limit)
{
    hold_measure all = {.limit = limit};
    REMAT_TRY(annealer_hold_all(h));
    annealer_measure(h, &all);
    h->most_over = all.over;
    return REMAT_OK;
}

/* ---- sweeps ---- */

/* The limits of the annealers interleave. */
static uint64_t nth_limit(const hold_annealer *h, size_t sweep, uint64_t n)
{
    const uint64_t count = (uint64_t)sweeps[sweep].limits * ANNEALERS, fine = count - (n * ANNEALERS - h->number);
    const uint64_t floor = sweep ? hold_bins_lowest(&h->bins)->peak : h->bins.bottom;
    const unsigned __int128 range = h->bins.top - floor, above = range * fine / count;
    if (sweeps[sweep].most == ROUND)
        return remat_max((uint64_t)((unsigned __int128)h->bins.top * fine / count), hold_bins_lowest(&h->bins)->peak);
    if (sweeps[sweep].most == HIGH)
        return h->bins.top - (uint64_t)((range - above) * (count - fine) / count);
    return floor + (uint64_t)(sweeps[sweep].most == LOW ? above * fine / count : above);
}

/* Effort goes where the bounds leave something to gain, in thousandths of the cost. */
static uint64_t limit_weight(const hold_annealer *h, uint64_t limit)
{
    enum { LEAST = 3, MOST = 10 };
    const hold_bin *best = hold_bins_cheapest(&h->bins, limit);
    const uint64_t bound = annealer_bound(h, limit);
    if (!best)
        return MOST;
    const unsigned __int128 gap = best->cost > bound ? best->cost - bound : 0;
    const unsigned __int128 weight = LEAST + gap * 1000 / (h->least_cost + 1);
    return weight < MOST ? (uint64_t)weight : MOST;
}

/* Down: from the best under the limit above. Up: from the best under the limit itself. In the first sweep, the second annealer
 * begins every limit with everything held. */
static remat_status anneal_limit(hold_annealer *h, size_t sweep, uint64_t n, uint64_t effort, bool *fits)
{
    const limit_sweep *now = &sweeps[sweep];
    const uint64_t limit = nth_limit(h, sweep, n);
    const hold_bin *begin = hold_bins_cheapest(&h->bins, now->down && n > 1 ? nth_limit(h, sweep, n - 1) : limit);
    *fits = false;
    h->way = sweep == 0 && h->number == 1 ? BY_TENSOR : now->firm ? FIRM : SOFT;
    if (h->way == BY_TENSOR)
        REMAT_TRY(annealer_hold_all(h));
    else if (begin)
        REMAT_TRY(annealer_adopt(h, begin->from));
    else if (sweep)
        return REMAT_OK;
    if (now->down && h->way != BY_TENSOR)
        REMAT_TRY(annealer_descend(h, limit, effort / 4));
    REMAT_TRY(annealer_anneal(h, limit, effort, h->way == BY_TENSOR ? 20000 : now->heat, fits));
    h->way = SOFT;
    *fits = *fits || hold_bins_cheapest(&h->bins, limit);
    return REMAT_OK;
}

static remat_status run_sweep(hold_annealer *h, size_t sweep)
{
    const uint64_t count = sweeps[sweep].limits;
    uint64_t weights[MOST_LIMITS], sum = 0;
    bool fits = true;
    for (uint64_t n = 1; n <= count; n++)
        sum += weights[n - 1] = limit_weight(h, nth_limit(h, sweep, n));
    for (uint64_t i = 1; i <= count && (fits || !sweeps[sweep].down); i++) {
        const uint64_t n = sweeps[sweep].down ? i : count + 1 - i;
        const uint64_t effort = h->effort / 1000 * sweeps[sweep].share / sum * weights[n - 1];
        REMAT_TRY(anneal_limit(h, sweep, n, effort, &fits));
    }
    return REMAT_OK;
}

/* From nothing held up, at some limits near the lowest peak. With nothing held, runs and what a change takes grow with the square of
 * the graph; less effort than that would end before anything is held. */
static remat_status rise(hold_annealer *h)
{
    enum { MOST_TRIES = 3, EFFORT_OF_PAIR = 200 };
    const uint64_t each = EFFORT_OF_PAIR * (uint64_t)h->active_count * h->active_count;
    const uint64_t tries = remat_min(h->effort / 1000 * RISE_SHARE / (each + 1), MOST_TRIES);
    hold_measure now = {.limit = UINT64_MAX};
    if (tries == 0)
        return REMAT_OK;
    REMAT_TRY(annealer_drop_all(h));
    annealer_measure(h, &now);
    const uint64_t bottom = remat_min(now.peak, h->bins.top), range = h->bins.top - bottom;
    for (uint64_t i = 0; i < tries; i++) {
        const uint64_t limit = i + h->number ? bottom + (range >> (8 - 2 * i - h->number)) : bottom;
        REMAT_TRY(annealer_rise(h, limit, each));
    }
    return REMAT_OK;
}

/* At some limits near the lowest peak, and some far above it. Before the last sweep, which goes on from what this finds. */
static remat_status cut_tightest(hold_annealer *h)
{
    enum { TRIES = 3 };
    const uint64_t range = h->bins.top - h->bins.bottom;
    for (size_t i = 0; i < TRIES; i++)
        REMAT_TRY(annealer_cut(h, h->tightest, h->bins.bottom + (range >> (7 - 2 * i - h->number)),
                               h->effort / 1000 * CUT_SHARE / TRIES));
    return REMAT_OK;
}

/* Goes on from the lowest peak, to lower ones. */
static remat_status lower_peak(hold_annealer *h)
{
    enum { TRIES = 8 };
    const uint64_t effort = h->effort / 1000 * LOWEST_SHARE / TRIES;
    const hold_bin *lowest = hold_bins_lowest(&h->bins);
    for (int i = 0; i < TRIES && lowest->peak > h->bins.bottom; i++) {
        const uint64_t limit = lowest->peak - (lowest->peak - h->bins.bottom + 63) / 64;
        bool fits;
        REMAT_TRY(annealer_adopt(h, lowest->from));
        if (i % 2 == 0)
            REMAT_TRY(annealer_descend(h, limit, effort / 2));
        REMAT_TRY(annealer_anneal(h, limit, effort, 10000, &fits));
    }
    return REMAT_OK;
}

/* Every gap that is not held in the best of a bin is held, if that is cheaper and still in the bin. */
static remat_status improve_bin(hold_annealer *h, size_t bin, uint64_t swaps)
{
    hold_measure now = {.limit = hold_bins_limit(&h->bins, bin)};
    const hold_bin *best = hold_bins_cheapest(&h->bins, now.limit);
    if (!best)
        return REMAT_OK;
    REMAT_TRY(annealer_adopt(h, best->from));
    for (uint32_t i = 0; i < h->active_count; i++) {
        const uint32_t gap = h->active[i], begin = h->g->gaps[gap].begin;
        const unsigned __int128 cost = h->state.cost;
        hold_mark mark;
        bool stays = false;
        if (h->state.from[gap] == begin)
            continue;
        hold_state_mark(&h->state, &mark);
        hold_state_note(&h->state, gap, begin);
        REMAT_TRY(hold_state_settle(&h->state));
        if (h->state.cost < cost) {
            annealer_measure(h, &now);
            REMAT_TRY(annealer_keep(h, now.peak));
            stays = now.peak <= now.limit;
        }
        if (stays)
            hold_state_accept(&h->state);
        else
            hold_state_revert(&h->state, &mark);
    }
    if (!swaps)
        return REMAT_OK;
    REMAT_TRY(annealer_swap(h, now.limit, swaps));
    return annealer_exchange(h, now.limit, swaps);
}

/* The round limits first, then finer and finer, so that no part of the curve is left out. Each annealer has its share. */
static remat_status improve_bins(hold_annealer *h)
{
    const uint64_t end = h->state.work + h->effort / 1000 * BINS_SHARE, parts = h->bins.parts;
    const uint64_t share = h->effort / 1000 * SWAP_SHARE / 10;
    const uint64_t steps[] = {parts / 20, remat_max(parts / 100, 1), remat_max(parts / 500, 1), 1};
    for (size_t pass = 0; pass < sizeof steps / sizeof *steps; pass++)
        for (size_t i = 0; i < h->bins.count && h->state.work < end; i++) {
            const uint64_t part = h->bins.first + i;
            const bool is_done = pass && part % steps[pass - 1] == 0;
            if (part % steps[pass] == 0 && !is_done && part / steps[pass] % ANNEALERS == h->number &&
                (pass == 0 || h->bins.bins[i].from))
                REMAT_TRY(improve_bin(h, i, pass == 0 ? share : 0));
        }
    return REMAT_OK;
}

/* Where the cost rises most from one limit to the next: anneals there, from above and from what is best there by turns. */
static remat_status anneal_steep(hold_annealer *h)
{
    enum { GRID = 64, TRIES = 16 };
    const uint64_t effort = h->effort / 1000 * STEEP_SHARE / TRIES, bottom = hold_bins_lowest(&h->bins)->peak;
    const uint64_t range = h->bins.top - bottom;
    unsigned visits[GRID] = {0};
    for (uint64_t i = 0; i < TRIES && range >= GRID; i++) {
        unsigned __int128 most = 0;
        size_t steepest = 0;
        for (size_t k = 0; k < GRID; k++) {
            const hold_bin *low = hold_bins_cheapest(&h->bins, bottom + range / GRID * k);
            const hold_bin *high = hold_bins_cheapest(&h->bins, bottom + range / GRID * (k + 1));
            const unsigned __int128 rise = (low->cost - high->cost) / (1 + visits[k]);
            if (rise > most) {
                most = rise;
                steepest = k;
            }
        }
        /* One annealer at the limit itself, the other half a step above it. */
        const uint64_t limit = bottom + range / GRID * steepest + range / GRID / 2 * h->number;
        const bool from_above = visits[steepest]++ % 2 == 0;
        const hold_bin *begin = hold_bins_cheapest(&h->bins, limit + (from_above ? range / GRID : 0));
        bool fits;
        REMAT_TRY(annealer_adopt(h, begin->from));
        if (from_above)
            REMAT_TRY(annealer_descend(h, limit, effort / 4));
        h->way = FIRM;
        REMAT_TRY(annealer_anneal(h, limit, effort, 10000, &fits));
        h->way = SOFT;
    }
    return REMAT_OK;
}

/* ---- side by side ---- */

/* What the annealers do between two exchanges of what they found: the sweeps, and then these. */
enum { STEEP = SWEEPS, BINS, POLISH, STEPS };
typedef struct search_step {
    hold_annealer *annealers;
    size_t number;
} search_step;

/* Good seeds leave nothing to gain near the lowest peak. */
static remat_status take_step(hold_annealer *h, size_t number)
{
    if (number == POLISH)
        return annealer_polish(h, h->effort / 1000 * POLISH_SHARE);
    if (number == BINS)
        return improve_bins(h);
    if (number == STEEP)
        return h->has_good_seeds ? REMAT_OK : anneal_steep(h);
    if (number == 0)
        REMAT_TRY(rise(h));
    if (number + 1 == SWEEPS && !h->has_good_seeds)
        REMAT_TRY(cut_tightest(h));
    REMAT_TRY(run_sweep(h, number));
    return number == 0 ? lower_peak(h) : REMAT_OK;
}

static void take_steps(const void *args, parallel_range range)
{
    const search_step *step = args;
    for (size_t i = range.begin; i < range.end; i++)
        step->annealers[i].status = take_step(&step->annealers[i], step->number);
}

/* Every annealer goes on with the best of all. */
static remat_status exchange(hold_annealer *annealers)
{
    for (size_t i = 1; i < ANNEALERS; i++)
        REMAT_TRY(hold_bins_merge(&annealers[0].bins, &annealers[i].bins, &annealers[0].state));
    for (size_t i = 1; i < ANNEALERS; i++)
        REMAT_TRY(hold_bins_merge(&annealers[i].bins, &annealers[0].bins, &annealers[i].state));
    return REMAT_OK;
}

static remat_status search(hold_annealer *annealers, unsigned threads)
{
    search_step step = {.annealers = annealers};
    for (; step.number < STEPS && annealers->active_count; step.number++) {
        parallel_dynamic(threads ? (int)threads : parallel_default_threads(), ANNEALERS, 1, take_steps, &step);
        for (size_t i = 0; i < ANNEALERS; i++)
            REMAT_TRY(annealers[i].status);
        REMAT_TRY(exchange(annealers));
    }
    return REMAT_OK;
}

/* ---- all together ---- */

static remat_status begin(hold_annealer *h)
{
    const hold_graph *g = h->g;
    uint64_t over, bottom;
    uint32_t position;
    h->active = remat_alloc(g->graph->context, g->gap_count, sizeof *h->active);
    h->decisions = remat_alloc(g->graph->context, g->gap_count, sizeof *h->decisions);
    h->gains = remat_alloc(g->graph->context, g->gap_count, sizeof *h->gains);
    if (!h->active || !h->decisions || !h->gains)
        return REMAT_NO_MEMORY;
    for (uint32_t i = 0; i < g->gap_count; i++)
        if (g->tensors[g->gaps[i].tensor].bytes && g->tensors[g->gaps[i].tensor].gap_count > 1)
            h->active[h->active_count++] = i;
    REMAT_TRY(hold_state_create(g, &h->state));
    REMAT_TRY(hold_exchange_create(g->graph->context, &h->exchange));
    const uint64_t top = hold_state_peak(&h->state, UINT64_MAX, 0, &over, &position);
    REMAT_TRY(graph_bound_tightest(g, &bottom, &h->tightest));
    hold_bins_init(&h->bins, g->gap_count, remat_min(bottom, top), top);
    const unsigned bits = remat_bits(top) + remat_bits(g->position_count);
    h->shift = bits > 62 ? bits - 62 : 0;
    h->least_cost = h->state.cost;
    h->random = 0x9e3779b97f4a7c15 * (h->number + 1);
    return REMAT_OK;
}

static void end(hold_annealer *h)
{
    remat_context *context = h->g->graph->context;
    hold_bins_release(&h->bins, context);
    remat_release(context, h->active, h->g->gap_count, sizeof *h->active);
    remat_release(context, h->decisions, h->g->gap_count, sizeof *h->decisions);
    remat_release(context, h->gains, h->g->gap_count, sizeof *h->gains);
    hold_exchange_release(context, h->exchange);
    hold_state_release(&h->state);
}

static remat_status try_seeds(hold_annealer *h, const hold_search_options *options)
{
    hold_measure now = {.limit = UINT64_MAX};
    annealer_measure(h, &now);
    REMAT_TRY(annealer_keep(h, now.peak));
    REMAT_TRY(annealer_go_down(h, false));
    REMAT_TRY(annealer_go_down(h, true));
    for (size_t i = 0; i < options->seed_count; i++) {
        const graph_sequence *seed = &options->seeds[i];
        REMAT_TRY(hold_state_decide_like(h->g, seed->actions, seed->count, h->decisions));
        REMAT_TRY(annealer_adopt(h, h->decisions));
        annealer_measure(h, &now);
        REMAT_TRY(annealer_keep(h, now.peak));
    }
    return REMAT_OK;
}

static remat_status report(hold_annealer *h, hold_found *found, void *user)
{
    for (size_t i = 0; i <= h->bins.count; i++) {
        if (!h->bins.bins[i].from)
            continue;
        graph_sequence sequence = {0};
        REMAT_TRY(annealer_adopt(h, h->bins.bins[i].from));
        remat_status status = hold_state_sequence(&h->state, &sequence);
        if (status == REMAT_OK)
            status = found(user, &sequence);
        graph_sequence_release(h->g->graph->context, &sequence);
        REMAT_TRY(status);
    }
    return REMAT_OK;
}

/* bounds[i] holds for limits up to the bottom + range * (i + 1) / BOUNDS. */
static remat_status find_bounds(const hold_bins *bins, const hold_graph *g, uint64_t bounds[BOUNDS])
{
    const uint64_t range = bins->top - bins->bottom;
    uint64_t limits[BOUNDS];
    for (uint64_t i = 0; i < BOUNDS; i++)
        limits[i] = bins->bottom + (uint64_t)((unsigned __int128)range * (i + 1) / BOUNDS);
    return graph_bound_costs(g, limits, BOUNDS, bounds);
}

remat_status hold_search_run(const hold_graph *g, const hold_search_options *options, hold_found *found, void *user)
{
    hold_annealer *annealers = remat_alloc_zeroed(g->graph->context, ANNEALERS, sizeof *annealers);
    if (!annealers)
        return REMAT_NO_MEMORY;
    remat_status status = REMAT_OK;
    uint64_t bounds[BOUNDS];
    hold_twins twins;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    status = hold_twins_create(g, &twins);
    for (size_t i = 0; i < ANNEALERS; i++) {
        hold_annealer *h = &annealers[i];
        *h = (hold_annealer){.g = g,
                             .twins = &twins,
                             .number = i,
                             .most_runs = options->most_runs,
                             .has_good_seeds = options->has_good_seeds,
                             .effort = options->effort / ANNEALERS,
                             .bounds = bounds};
        if (status == REMAT_OK)
            status = begin(h);
        h->state.lock = &lock;
    }
    if (status == REMAT_OK)
        status = find_bounds(&annealers[0].bins, g, bounds);
    if (status == REMAT_OK)
        status = try_seeds(&annealers[0], options);
    if (status == REMAT_OK)
        status = exchange(annealers);
    if (status == REMAT_OK)
        status = search(annealers, options->threads);
    if (status == REMAT_OK)
        status = report(&annealers[0], found, user);
    for (size_t i = 0; i < ANNEALERS; i++)
        end(&annealers[i]);
    hold_twins_release(g, &twins);
    remat_release(g->graph->context, annealers, ANNEALERS, sizeof *annealers);
    return status;
}
