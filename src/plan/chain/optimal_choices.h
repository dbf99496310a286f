/* The recursion of the planner over intervals.
 *
 * least_cost(m, i, l, P, R) is the least cost of the layers i..l within m bytes, from x_i. P says what is pending at the right
 * end when the interval begins, R what is left undone at the left end when it finishes. m counts the bytes of P and
 * everything that the interval makes; x_i only where R drops it; the network's input x_0 never. A plan of the chain is
 * least_cost(budget - x_0, 0, n-1, LOSS, NOTHING). As a function of m the value is a staircase, and each choice below offers
 * the sum of two staircases (optimal_staircase.h).
 *
 * P, at position p = l + 1 (optimal_model.h):
 *   GRADIENT  y_p is live;
 *   SAVED M   s_p in mode M and y_{p+1} are live, and backward p waits for x_p;
 *   LOSS      the loss waits for x_n.
 * R:
 *   NOTHING   everything down to backward i is done; the caller holds x_i;
 *   (k, P')   x_i is dropped after its last use; the layers k..l are done, and i..k-1 are left with P' pending at k. With
 *             k = i, s_i is left and waits for x_i. With k > i, x_i was a temporary base. With k = l+1, only what was pending
 *             at l+1 is done, and P' is GRADIENT.
 *
 * Temporary bases: R = (k, .) with k > i is tried only where x_i is smaller than every x_t, i < t <= k. Otherwise x_t could
 * take its place from the first pass on, since all work from x_i lies right of t. So the bases for k are k's ancestors
 * by optimal_model.base_parent.
 *
 * Choices. B: the bytes of x_i where R drops it, else 0. pass(i, j): forwards i..j-1 that save nothing, beside P and B.
 *
 *  SAVE      R is NOTHING or (i, SAVED M). Forward i saves in mode M; drop x_i if R says so;
 *            least_cost(m - bytes saved, i+1, l, P, NOTHING), or what is pending if i = l; backward i if R is NOTHING.
 *  SPLIT     pass(i, j), i < j <= l, and then one of
 *             - keep x_j:  least_cost(m - x_j - B, j, l, P, NOTHING); drop x_j; least_cost(m, i, j-1, GRADIENT, R);
 *             - drop x_j:  least_cost(m - B, j, l, P, (k, P')), j <= k <= l; least_cost(m, i, k-1, P', R);
 *             - j = l+1:   do what is pending; drop x_{l+1}; least_cost(m, i, l, GRADIENT, R).
 *  LAST USE  R is (k, P') with k > i. pass(i, j), i < j <= k, with x_i dropped after its first forward; then
 *            least_cost(m, j, l, P, R), or, where j = k and P' is GRADIENT, least_cost(m - x_k, k, l, P, NOTHING) (k = l+1:
 *            what is pending) and drop x_k.
 *
 * A left part with R = (k', .) must have k' <= its own last layer + 1. Nobody checks this: states beyond do not exist.
 *
 * Forms (optimal_model.h): where some mode holds an x in fewer bytes than the x has, a pass may run in that form. R
 * carries the form of its x_i. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_CHOICES_H
#define REMAT_PLAN_CHAIN_OPTIMAL_CHOICES_H

#include "plan/chain/optimal_intervals.h"
#include "plan/chain/optimal_staircase.h"

typedef struct optimal_state {
    uint32_t start, last, pending; /* start = last + 1: no layers, only what is pending */
    uint32_t rest;                 /* 0: NOTHING, else the number of a rest (k, P') in some form */
} optimal_state;

/* A rest (k, P'), with the form of the x that is dropped. */
typedef struct optimal_rest {
    uint32_t k, pending, form;
} optimal_rest;

typedef enum choice_kind { CHOICE_SAVE, CHOICE_SPLIT, CHOICE_LAST_USE } choice_kind;

typedef struct optimal_choice {
    choice_kind kind;
    uint32_t mode;             /* SAVE */
    uint32_t cut, form;        /* SPLIT and LAST_USE: the pass leads to x_cut, in this form */
    bool keeps;                /* x_cut is held while the right part runs, then dropped */
    optimal_state right, left; /* the left part only of SPLIT */
    staircase_offer offer;
} optimal_choice;

typedef struct optimal_table {
    const optimal_model *model;
    optimal_intervals intervals;
    size_t *first_state;  /* count + 1: where each interval's staircases begin */
    uint32_t *rest_count; /* rests of each interval, NOTHING included */
    staircase *stairs;
    uint64_t *pending_steps;        /* (n + 1) * pending_limit * 3: memory, MEMORY_END, cost of what is pending */
    struct corner_chunk *chunks;    /* corner storage, a list of blocks */
    uint64_t memory_cap;            /* bytes beside the input */
    size_t corners, suffix_corners; /* limits per staircase */
    bool prunes;                    /* leaves out corners of rests that were never found to matter */
    bool thinned;                   /* some staircase had more corners than its limit */
} optimal_table;

/* One way to split an interval, with all that does not depend on what is pending and left looked up once. */
typedef struct optimal_split {
    uint32_t cut, k, pending; /* the left part is start..k-1 with this pending */
    uint32_t right, left;     /* numbers of the two parts; right is not used where cut = last + 1 */
    uint32_t right_rest, form;
    uint64_t shift;      /* x_cut where it is kept */
    uint64_t peak, cost; /* of the pass, beyond x_start */
} optimal_split;

remat_status optimal_table_number_states(remat_context *context, optimal_table *table);
remat_status optimal_table_fill_pending_steps(remat_context *context, optimal_table *table);
size_t optimal_table_state_number(const optimal_table *table, optimal_state state); /* of a visited interval */
staircase optimal_table_stairs(const optimal_table *table, optimal_state state);
bool optimal_state_exists(const optimal_model *model, optimal_state state);

/* The rests of an interval, NOTHING included; those of a shorter interval from the same start have the same numbers. */
uint32_t optimal_rest_count(const optimal_model *model, size_t start, size_t last);
optimal_rest optimal_rest_of(const optimal_model *model, optimal_state state); /* state.rest > 0 */

/* Saving the first layer in mode q: least memory, bytes taken from what follows, cost. False where it may not. */
bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost);

/* What a state that leaves a rest has to beat: to keep x_start and leave nothing, less what the rest must cost at least.
 * False where that might end with more bytes than the rest. */
bool optimal_state_rival(const optimal_table *table, optimal_state state, staircase_offer *rival);

size_t optimal_most_splits(const optimal_table *table); /* room optimal_list_splits needs */
/* All ways to split an interval at the given places, which rise. */
size_t optimal_list_splits(const optimal_table *table, optimal_interval interval, const uint32_t *places,
                           size_t place_count, optimal_split *splits);

/* Hands every choice of a state to visit, until that returns true. */
typedef bool (*visit_choice)(void *context, const optimal_choice *choice);
void optimal_each_choice(const optimal_table *table, optimal_state state, const optimal_split *splits,
                         size_t split_count, visit_choice visit, void *context);
#endif
