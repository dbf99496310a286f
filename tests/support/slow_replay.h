/* The memory model of a chain once more, slowly, and apart from the library: written from the table of the
 * specification, reading profiles through the public headers only. Each step adds up everything that is live from
 * nothing, so that no running sum can drift. Tests compare the library's simulator with it. */
#ifndef TESTS_SLOW_REPLAY_H
#define TESTS_SLOW_REPLAY_H

#include <remat/remat.h>

typedef struct step_list {
    remat_step *steps;
    size_t count, capacity;
} step_list;
void step_list_add(step_list *list, remat_op op, size_t layer, uint16_t save);
void step_list_clear(step_list *list);
/* A remat_step_fn that appends to the step_list behind `user`. */
remat_status step_list_take(void *user, remat_step step);

typedef struct slow_replay {
    const remat_profile *profile;
    size_t n;
    bool *x, *y;         /* n + 1 of each: whether x_i and y_i are live on their own */
    bool *s;             /* n: whether s_i is live, */
    uint16_t *s_mode;    /* the mode it was saved in, */
    bool *s_by_first;    /* and whether the layer's first forward made it */
    uint32_t *forwards;  /* n */
    uint16_t *decisions; /* n: a mode, or REMAT_NO_SAVE for recomputed; good after the layer's backward */
    bool *went_backward; /* n */
    unsigned losses;
    uint64_t steps, peak, peak_step, cost;
} slow_replay;

slow_replay *slow_replay_start(const remat_profile *profile);
void slow_replay_end(slow_replay *replay);

/* Whether x_i can be read: alone, or inside s_{i-1}. */
bool slow_replay_readable(const slow_replay *replay, size_t i);
uint64_t slow_replay_live(const slow_replay *replay);
/* Whether the step is legal now; changes nothing. */
bool slow_replay_allows(const slow_replay *replay, remat_step step);
/* Plays a step; false, and nothing changed, where it is not legal. */
bool slow_replay_step(slow_replay *replay, remat_step step);
/* Whether the schedule may end here. */
bool slow_replay_complete(const slow_replay *replay);

/* What follows from a complete schedule. */
typedef struct slow_figures {
    bool legal;
    size_t illegal_step; /* the first; the number of steps where only the end came too early */
    uint64_t peak, peak_step, cost, kept_bytes, recompute_flops, recomputed_layers, largest_recomputed;
} slow_figures;
slow_figures slow_replay_figures(const slow_replay *replay);

/* All at once. */
slow_figures slow_replay_all(const remat_profile *profile, const remat_step *steps, size_t count);

#endif
