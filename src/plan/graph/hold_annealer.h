/* One of the searches that hold_search.c runs side by side: the schedule at hand, random numbers, and what was found.
 *
 * hold_moves.c changes the schedule at random, hold_anneal.c accepts or rejects the changes, hold_greedy.c changes it step by
 * step by what is cheapest. */
#ifndef REMAT_PLAN_GRAPH_HOLD_ANNEALER_H
#define REMAT_PLAN_GRAPH_HOLD_ANNEALER_H

#include "plan/graph/hold_bins.h"
#include "plan/graph/hold_twins.h"

/* So many run side by side. */
enum { ANNEALERS = 2 };

/* What it would save to hold a gap, for its bytes, when it was looked at last. */
typedef struct hold_gain {
    uint64_t saved; /* 0: nothing, or it does not fit */
    uint32_t from;
} hold_gain;

typedef struct hold_exchange hold_exchange;

typedef struct hold_annealer {
    const hold_graph *g;
    const hold_twins *twins;
    size_t number;                /* 0 or 1: each goes its own way */
    uint64_t effort;              /* of all that it does, counted in state.work */
    uint64_t most_runs;           /* longer schedules are rejected */
    bool has_good_seeds;          /* hold_search.h */
    unsigned __int128 least_cost; /* with everything held: recomputation is what is above */
    unsigned shift;               /* of sums of bytes over a limit */
    const uint64_t *bounds;       /* what no schedule costs less, for some limits from the bottom to the top */
    uint32_t tightest;            /* the position that needs most bytes, whatever is held */
    hold_state state;
    hold_bins bins;
    uint32_t *active; /* the gaps worth deciding */
    uint32_t active_count;
    uint32_t *decisions; /* room for those of one schedule */
    uint64_t random;
    hold_gain *gains;        /* of each active gap: room for annealer_rise */
    hold_exchange *exchange; /* room for annealer_exchange */
    /* FIRM: nothing goes above the limit. BY_TENSOR: only whole tensors are changed. PRICED: a byte above the limit has one price,
     * which follows from most_over. SOFT: its price grows until the limit is met */
    enum { SOFT, FIRM, BY_TENSOR, PRICED } way;
    uint64_t most_over; /* for PRICED: what is above the limit with everything held, summed over all positions */
    remat_status status;
} hold_annealer;

/* 64 random bits, by Marsaglia's xorshift; a number below a bound. */
static inline uint64_t random_bits(hold_annealer *h)
{
    h->random ^= h->random << 13;
    h->random ^= h->random >> 7;
    return h->random ^= h->random << 17;
}
static inline uint32_t random_below(hold_annealer *h, uint32_t bound)
{
    return (uint32_t)(((random_bits(h) >> 32) * bound) >> 32);
}

/* Takes over all decisions of a schedule. */
remat_status annealer_adopt(hold_annealer *h, const uint32_t *from);
/* Everything is held; nothing is held, and all is made again for every reader. */
remat_status annealer_hold_all(hold_annealer *h);
remat_status annealer_drop_all(hold_annealer *h);
/* Notes the schedule at hand in the bins. */
remat_status annealer_keep(hold_annealer *h, uint64_t peak);

/* The schedule at hand under a limit. */
typedef struct hold_measure {
    uint64_t limit;
    uint64_t peak, over; /* the sum over all positions of what is above the limit */
    uint32_t position;   /* of the peak */
} hold_measure;
void annealer_measure(hold_annealer *h, hold_measure *measure);
/* Finds the price of PRICED for a limit, and holds everything. */
remat_status annealer_price(hold_annealer *h, uint64_t limit);
/* What no schedule within a limit costs less. */
uint64_t annealer_bound(const hold_annealer *h, uint64_t limit);

/* ---- hold_moves.c ---- */

/* What a random change decides. */
typedef struct hold_change {
    uint32_t first; /* gap; if `count` is not 0 */
    uint32_t count;
} hold_change;
/* Decides something else, without settling. */
void annealer_change(hold_annealer *h, const hold_measure *now, hold_change *change);
/* Drops something more at a peak that is too high. Returns false where nothing was found. */
bool annealer_make_room(hold_annealer *h, const hold_measure *now, hold_change *change);
/* One more decision of a change. Does nothing where it is taken already. */
void annealer_propose(hold_annealer *h, hold_change *change, uint32_t gap, uint32_t from);

/* ---- hold_twins.c ---- */

/* Exchanges the decisions of two stretches of actions that are alike, or copies them from one to the other; without settling. There
 * must be such actions, but the change may be empty. */
void annealer_exchange_twins(hold_annealer *h, hold_change *change);

/* ---- hold_anneal.c ---- */

/* Anneals under a limit and ends with the best that fits; where nothing did, with the schedule at hand. `heat` is in
 * millionths of the cost. */
remat_status annealer_anneal(hold_annealer *h, uint64_t limit, uint64_t effort, uint64_t heat, bool *fits);
/* The same, but it ends with the last schedule of the annealing, which is another than the first. If that is above the limit, it ends
 * with the best that it met within it. */
remat_status annealer_shake(hold_annealer *h, uint64_t limit, uint64_t effort, uint64_t heat, bool *fits);

/* ---- hold_greedy.c ---- */

/* Drops what takes most off the excess for its cost, until the limit is met, nothing helps, or the effort is spent. */
remat_status annealer_descend(hold_annealer *h, uint64_t limit, uint64_t effort);
/* From everything held down: of what lives at the peak, what is cheapest to make again for its bytes is made again, once or
 * (`each`) for every reader. All schedules on the way are kept. */
remat_status annealer_go_down(hold_annealer *h, bool each);

/* ---- hold_rise.c ---- */

/* From nothing held up: what saves most for its bytes is held, as long as the limit is met and effort is left. All schedules on the
 * way are kept. Ends with the best, or with nothing held where that is above the limit. */
remat_status annealer_rise(hold_annealer *h, uint64_t limit, uint64_t effort);

/* ---- hold_cut.c ---- */

/* Anneals under a limit from a schedule in which nothing passes over a position: what is needed behind it is made again. */
remat_status annealer_cut(hold_annealer *h, uint32_t position, uint64_t limit, uint64_t effort);

/* ---- hold_swap.c ---- */

/* Exchanges gaps that are held for others, while that is cheaper and within the limit, until nothing more is or the effort is
 * spent. The schedule at hand must be within the limit. All schedules on the way are kept. */
remat_status annealer_swap(hold_annealer *h, uint64_t limit, uint64_t effort);

/* ---- hold_exchange.c ---- */

/* As annealer_swap, with more gaps at once: up to two that save for up to three that pay. */
remat_status annealer_exchange(hold_annealer *h, uint64_t limit, uint64_t effort);
/* The memory that it works in. */
remat_status hold_exchange_create(remat_context *context, hold_exchange **made);
void hold_exchange_release(remat_context *context, hold_exchange *room);

/* ---- hold_polish.c ---- */

/* Improves the best schedules under round parts of the highest peak: short annealings and exchanges, by turns. */
remat_status annealer_polish(hold_annealer *h, uint64_t effort);

#endif
