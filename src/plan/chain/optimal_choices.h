/* The recursion itself.
 *
 * go(m, i, l, v, E) is the least cost of the layers i..l within m bytes when x_i is readable. m counts the tail v, the
 * base x_i only where the end E is LEAVES, and everything new; the network's input x_0 is never counted. The answer is
 * go(budget - x_0, 0, n-1, LOSS, STAYS). As a function of m it is a staircase, and a choice is an offer: a sum of two
 * staircases, shifted (optimal_staircase.h).
 *
 * Tails v (optimal_tails.h), held from the start: GRADIENT y_{l+1}; LOSS nothing yet; SAVED s_{l+1} and y_{l+2}. T(v)
 * are a tail's bytes; its own step, once x_{l+1} is readable, is the loss or the backward that waits.
 *
 * Ends E (optimal_ends.h): STAYS: the caller holds x_i, everything down to backward i is done. LEAVES(k, v'): x_i is
 * dropped after its last use; the layers k..l are done, i..k-1 are left with tail v' behind them (k = i: s_i is left; k
 * = l+1: only the tail's step is done).
 *
 * Records: LEAVES(k, .) with k > j is needed only where x_j is smaller than every x_t, j < t <= k. Otherwise holding
 * x_t instead, from the first pass on, is no worse: all work from x_j lies right of t. Equal layers have no records,
 * random sizes O(log n) for each k.
 *
 * Choices. B: bytes of x_i where E is LEAVES, else 0. pass(i, j): forwards i..j-1 that save nothing, beside T(v) + B.
 *
 *  SAVE M      E is STAYS or LEAVES(i, SAVED M). Forward i saving in M; drop x_i if E is LEAVES;
 *              go(m - bytes added, i+1, l, v, STAYS), or the tail's step if i = l; backward i if E is STAYS.
 *  SPLIT       pass(i, j), i < j <= l, and then one of
 *   - x_j is kept: go(m - x_j - B, j, l, v, STAYS); drop x_j; go(m, i, j-1, GRADIENT, E);
 *   - x_j leaves: go(m - B, j, l, v, LEAVES(k, v')), j <= k <= l; go(m, i, k-1, v', E). With k = j, s_j is left and its
 *     backward waits for x_j; with k > j, x_j was a temporary base;
 *   - j = l+1, the tail is settled: the tail's step; drop x_{l+1}; go(m, i, l, GRADIENT, E).
 *  LAST USE    E is LEAVES(k, v'). pass(i, j), i < j <= k, x_i dropped after its first forward; go(m, j, l, v, E), or
 *              where j = k and v' is GRADIENT: go(m - x_k, k, l, v, STAYS) (k = l+1: the tail's step) and drop x_k.
 *
 * A left part (i, k-1, v', E) needs E's own k to be smaller, or equal with nothing but a tail's step left to do. Nobody
 * checks it: the other parts are not among the ends of (i, k-1).
 *
 * Forms (optimal_model.h): where a mode holds x_j in fewer bytes than x_j has, or runs cheaper than a plain forward, a
 * pass may use it in place of a plain one: one form for its last x, one for those between. LEAVES carries the form of
 * its base.
 *
 * To add a choice, append it to optimal_each_choice() and say in optimal_steps.c which steps it stands for. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_CHOICES_H
#define REMAT_PLAN_CHAIN_OPTIMAL_CHOICES_H

#include "plan/chain/optimal_ends.h"
#include "plan/chain/optimal_intervals.h"
#include "plan/chain/optimal_staircase.h"

typedef struct optimal_state {
    uint32_t start, last, tail; /* start = last + 1: no layers, only the tail's own step */
    uint32_t end;               /* an index among the ends of start; 0 is STAYS */
} optimal_state;

typedef enum choice_kind { CHOICE_SAVE, CHOICE_SPLIT, CHOICE_LAST_USE } choice_kind;

typedef struct optimal_choice {
    choice_kind kind;
    uint32_t mode;        /* of the first layer, where it is saved */
    uint32_t cut;         /* SPLIT and LAST_USE: forwards start..cut-1 save nothing */
    uint32_t form, inner; /* their forms: of x_cut, and of those before */
    bool keeps;           /* x_cut is held while the right part runs, then dropped */
    bool has_left;
    optimal_state right, left;
    staircase_offer offer;
} optimal_choice;

typedef struct optimal_table {
    const optimal_model *model;
    optimal_intervals intervals;
    uint32_t tails;      /* kinds of tail */
    size_t *first_state; /* count + 1: where each interval's staircases begin, tail by tail */
    uint32_t *end_count; /* ends of each interval */
    staircase *stairs;
    uint64_t *empty;                /* (n + 1) * tails * 3: memory, MEMORY_END, cost of the tail's own step */
    struct corner_chunk *chunks;    /* corner storage, a list of blocks */
    uint64_t memory_cap;            /* bytes beside the input */
    size_t corners, suffix_corners; /* limits per staircase */
    size_t stored_corners;
    bool thinned; /* some staircase had more corners than its limit */
} optimal_table;

/* One way to split an interval, with all that does not depend on its tail and end looked up once. */
typedef struct optimal_split {
    uint32_t cut, k, tail; /* the left part is start..k-1 with this tail */
    uint32_t right, left;  /* numbers of the two parts; NO_INTERVAL where not visited, and right where cut = last + 1 */
    uint32_t right_end;
    uint32_t form, inner;
    uint64_t shift;      /* x_cut where it is kept */
    uint64_t peak, cost; /* of the pass, beyond the base */
} optimal_split;

remat_status optimal_table_number_states(remat_context *context, optimal_table *table);
remat_status optimal_table_fill_empty(remat_context *context, optimal_table *table);
size_t optimal_table_state_number(const optimal_table *table, optimal_state state); /* of a visited interval */
bool optimal_state_exists(const optimal_model *model, optimal_state state);
staircase optimal_table_stairs(const optimal_table *table, optimal_state state);
/* Saving the first layer in mode q: least memory, bytes taken from what follows, cost. False where it may not. */
bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost);
uint64_t optimal_state_base(const optimal_model *model,
                            optimal_state state); /* bytes of x_start where the state counts it */

/* What a state that leaves competes with: keeping x_start instead, start..k-1 done too at the least they can cost. A
 * corner that is not below this is of no use to a split. False where the argument does not hold. */
bool optimal_state_rival(const optimal_table *table, optimal_state state, staircase_offer *rival);

size_t optimal_most_splits(const optimal_table *table); /* room optimal_list_splits needs */
/* All ways to split at the given places, those that settle the tail first; `all`: also into parts that are not visited.
 */
size_t optimal_list_splits(const optimal_table *table, optimal_interval interval, const uint32_t *places,
                           size_t place_count, bool all, optimal_split *splits);

/* Hands every choice of a state to visit, until one is enough (true); `all`: also those that have no staircase. */
typedef bool (*visit_choice)(void *context, const optimal_choice *choice);
void optimal_each_choice(const optimal_table *table, optimal_state state, const optimal_split *splits,
                         size_t split_count, bool all, visit_choice visit, void *context);
#endif
