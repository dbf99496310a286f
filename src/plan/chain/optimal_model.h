/* What the optimal planner needs to know about a chain, in constant time per question. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_MODEL_H
#define REMAT_PLAN_CHAIN_OPTIMAL_MODEL_H

#include "graph/chain.h"

/* Every sum of bytes or costs the engine forms from at most three stored figures stays below 2^64. */
#define FIGURE_LIMIT ((uint64_t)1 << 61)

typedef struct period_run {
    size_t begin, end, period; /* layers begin..end-1 repeat with this period */
} period_run;

/* One way to make x_{i+1} without keeping s_i for its backward: a plain forward or, where a mode holds x_{i+1} in fewer
 * bytes or runs cheaper, a saving forward whose s_i is dropped like an x. */
typedef struct optimal_form {
    uint64_t bytes;      /* while x_{i+1} is held so */
    uint64_t step_bytes; /* added while the step runs, workspace included */
    uint64_t cost;
    uint32_t save; /* 0: a plain forward, else 1 + mode */
    bool inside;   /* x_{i+1} is held inside s_i */
} optimal_form;

enum { FORM_PLAIN = 0, MOST_FORMS = 3 };

/* Forwards that save nothing for a backward, seen from x_i: most bytes beyond x_i during the first one and during the
 * others. */
typedef struct optimal_pass {
    uint64_t first, rest, cost;
} optimal_pass;

/* ends.h: how an interval finishes at its left end. */
typedef enum end_kind {
    END_STAYS, /* x_start is held by the caller and not counted; everything down to backward start is done */
    END_LEAVES /* x_start is counted and dropped after its last use; the layers start..k-1 are left with `tail` behind
                  them */
} end_kind;

typedef struct optimal_end {
    uint32_t kind;
    uint32_t ahead; /* LEAVES: k - start */
    uint32_t tail;
    uint32_t form; /* LEAVES: the form in which x_start is held */
    uint32_t next; /* LEAVES with ahead > 0: how far ahead the next record of k is, at most `ahead` (k itself) */
} optimal_end;

typedef struct optimal_ends {
    optimal_end *list;
    size_t *first; /* n + 1: where each start's list begins; its entry 0 is STAYS */
    size_t count, starts;
} optimal_ends;

typedef struct optimal_model {
    const remat_profile *chain;
    size_t n;
    uint32_t mode_limit; /* 1 + the highest index of a mode that any layer may use */
    bool modes_left_out; /* there are more, which would take too long */
    bool allow_lossy;
    uint64_t *x;              /* n + 1: bytes of x_i */
    uint64_t *y;              /* n + 1: bytes of y_i */
    uint32_t form_limit;      /* forms in use: 1 unless some mode beats a plain forward in bytes or cost */
    optimal_form *forms;      /* form_limit * n: how layer i makes x_{i+1}; form 0 is the plain forward */
    uint64_t *forward_before; /* form_limit * (n + 1): cost of forwards 0..i-1 in a form */
    uint64_t
        *move_peak; /* form_limit * levels * n: maxima over 2^level layers of one forward's bytes, its x included */
    uint64_t *least_before; /* n + 1: least cost of the layers 0..i-1, one forward and one backward each */
    optimal_ends ends;      /* optimal_ends.h */
    uint32_t *rank;         /* n + 1: over how wide a window (2^rank) cutting at x_i is the cheapest place */
    period_run *runs;       /* where layers repeat */
    size_t run_count, run_capacity;
    int32_t *run_of; /* n: the run a layer is in, or -1 */
    uint64_t keep_all_peak, base_cost;
} optimal_model;

/* `tight`: for budgets near the least, where temporary bases pay on long chains too (optimal_ends.h). REMAT_INVALID
 * where sums reach the limit above, REMAT_NO_MEMORY. A model that was not built is all zero. */
remat_status optimal_model_build(remat_context *context, const remat_profile *chain, bool allow_lossy, bool tight,
                                 optimal_model *model);
void optimal_model_free(remat_context *context, optimal_model *model);

/* Whether the sums of all figures of the chain stay below FIGURE_LIMIT. */
bool optimal_figures_fit(const remat_profile *chain);

/* The mode, or NULL where the layer has no such mode or may not use it. */
const remat_mode *optimal_model_mode(const optimal_model *model, size_t layer, uint32_t mode);

/* Forwards i..j-1 (i < j), each x dropped after it was read: the last one in form `last`, the others in form `inner`.
 */
optimal_pass optimal_model_pass(const optimal_model *model, size_t i, size_t j, uint32_t last, uint32_t inner);
/* Bytes of x_i in a form, i > 0. */
uint64_t optimal_model_x(const optimal_model *model, size_t i, uint32_t form);
/* Fewest bytes of x_i in any form, i > 0. */
uint64_t optimal_model_smallest_x(const optimal_model *model, size_t i);

/* optimal_forms.c: fills forms and form_limit, then the tables of passes. */
remat_status optimal_find_forms(remat_context *context, optimal_model *model);
/* Gives forms and the tables of passes back. */
void optimal_free_forms(remat_context *context, optimal_model *model);

/* The first start of an interval that looks exactly like start..last, its neighbours included. */
size_t optimal_model_canonical_start(const optimal_model *model, size_t start, size_t last);

/* optimal_periods.c: fills runs, run_count, run_of. */
remat_status optimal_find_runs(remat_context *context, optimal_model *model);

#endif
