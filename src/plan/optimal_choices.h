/* The recursion itself: the states of an interval and the choices of each state.
 * To add a kind of tail or end, extend the values below and per_side; to add a choice, append it in
 * optimal_list_choices() and say in optimal_steps.c which steps it stands for. Nothing else knows the recursion. */
#ifndef REMAT_PLAN_OPTIMAL_CHOICES_H
#define REMAT_PLAN_OPTIMAL_CHOICES_H

#include "plan/optimal_intervals.h"
#include "plan/optimal_staircase.h"

/* tail: what waits at the right end.  end: how the interval finishes at its left end. */
enum {
    TAIL_GRADIENT = 0, /* y_{last+1} is live */
    TAIL_LATE = 1,     /* TAIL_LATE + q: s_{last+1} in mode q and y_{last+2}; its backward waits for x_{last+1} */
    TAIL_LOSS = 1,     /* where last = n-1: the loss has yet to run */
    END_DONE = 0,      /* x_start stays, is not counted, and every backward is done */
    END_LATE = 1       /* END_LATE + q: x_start is counted and goes; s_start in mode q and y_{start+1} are left */
};

typedef struct optimal_state {
    uint32_t start, last, tail, end; /* start = last + 1: no layers, only the tail's own step */
} optimal_state;

typedef enum choice_kind { CHOICE_SAVE, CHOICE_KEEP_INPUT, CHOICE_LATE_INPUT } choice_kind;

typedef struct optimal_choice {
    choice_kind kind;
    uint32_t mode;             /* CHOICE_SAVE: of the first layer; CHOICE_LATE_INPUT: of layer cut */
    uint32_t cut;              /* forward start..cut-1 without saving; last + 1 settles the tail first */
    optimal_state right, left; /* left unused for CHOICE_SAVE */
    staircase_offer offer;
} optimal_choice;

typedef struct optimal_table {
    const optimal_model *model;
    optimal_intervals intervals;
    uint32_t per_side;              /* 1 + modes: kinds of tail, and of end */
    staircase *stairs;              /* intervals.count * per_side * per_side */
    uint64_t *empty;                /* (n + 1) * per_side * 3: memory, MEMORY_END, cost of the tail's own step */
    struct corner_chunk *chunks;    /* corner storage, a list of blocks */
    uint64_t memory_cap;            /* bytes beside the input */
    size_t corners, suffix_corners; /* limits per staircase */
    size_t stored_corners;
    bool thinned; /* some staircase had more corners than its limit */
} optimal_table;

/* One place an interval may be cut at, with the numbers of the two parts looked up once for all states. */
typedef struct optimal_cut {
    uint32_t cut, right, left;
    uint64_t run_peak;
} optimal_cut;

remat_status optimal_table_fill_empty(remat_context *context, optimal_table *table);
/* Bytes the tail holds from the start, and bytes and cost of its own step once x_behind is live (not counted). */
uint64_t optimal_tail_bytes(const optimal_model *model, optimal_state state);
void optimal_tail_step(const optimal_model *model, size_t behind, uint32_t tail, uint64_t *memory, uint64_t *cost);
/* Saving the first layer in mode q: least memory, bytes taken from what follows, cost. False where it may not. */
bool optimal_save_figures(const optimal_model *model, optimal_state state, uint32_t q, uint64_t *floor, uint64_t *shift,
                          uint64_t *cost);
bool optimal_state_exists(const optimal_model *model, optimal_state state);
staircase optimal_table_stairs(const optimal_table *table, optimal_state state);
/* Room for cuts: n + 1. */
size_t optimal_list_cuts(const optimal_table *table, optimal_interval interval, uint32_t *places, optimal_cut *cuts);
/* Room for choices: (cuts + 1) * (1 + modes). */
size_t optimal_list_choices(const optimal_table *table, optimal_state state, const optimal_cut *cuts, size_t cut_count,
                            optimal_choice *choices);
size_t optimal_most_choices(const optimal_table *table, size_t cut_count);

#endif
