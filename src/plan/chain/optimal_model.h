/* What the planner over intervals asks about a chain: how x can be made and held, what can wait for its input, which x may
 * serve as a temporary base, where to cut long intervals, and where layers repeat. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_MODEL_H
#define REMAT_PLAN_CHAIN_OPTIMAL_MODEL_H

#include "base/min_max.h"
#include "graph/chain.h"

/* Sums of bytes or of costs of a whole chain stay below; so every sum of three stored figures stays below 2^64. */
#define FIGURE_LIMIT ((uint64_t)1 << 61)

/* One way to make x_{i+1} without keeping s_i for its backward: a plain forward or, where some mode holds x_{i+1} in fewer
 * bytes, a saving forward whose s_i is used and dropped like an x. */
typedef struct optimal_form {
    uint64_t bytes;      /* while x_{i+1} is held in this form */
    uint64_t step_bytes; /* added while the forward runs, with its workspace */
    uint64_t cost;
    uint32_t save; /* 0: a plain forward, else 1 + mode */
    bool inside;   /* x_{i+1} is held inside s_i */
} optimal_form;

enum { FORM_PLAIN, FORM_SMALLEST, MOST_FORMS };

/* A pass: forwards from x_start on that save nothing for a backward; each x is dropped once it was read. The most bytes
 * beyond x_start, during the first forward and during the others. */
typedef struct optimal_pass {
    uint64_t first, rest, cost;
} optimal_pass;

/* What is pending behind the last layer of an interval, at position p = last + 1. */
enum {
    PENDING_GRADIENT = 0, /* y_p is live, and nothing waits */
    PENDING_SAVED = 1,    /* PENDING_SAVED + q: s_p in mode q and y_{p+1} are live; backward p waits for x_p */
    PENDING_LOSS = 1      /* at p = n: the loss waits for x_n */
};

typedef struct period_run {
    uint32_t begin, end, period; /* layers begin..end-1 repeat with this period; 0: they do not */
} period_run;

typedef struct optimal_model {
    const remat_profile *chain;
    size_t n;
    uint32_t mode_limit; /* 1 + the highest number of a mode that may be used */
    bool modes_left_out; /* there are more modes, which would take too long */
    bool allow_lossy;
    uint32_t pending_limit; /* kinds of what can be pending */
    uint32_t form_count;    /* 1 where no mode holds an x in fewer bytes than the x has */
    optimal_form *forms;    /* form_count * n: how layer i makes x_{i+1} */
    uint64_t *least_cost;   /* n: of a saving forward and its backward, in the cheapest mode */
    uint32_t *base_parent;  /* n + 1: the last position before i with a smaller x; 0: none */
    uint32_t *base_reach;   /* n + 1: x_i may be a temporary base for the positions k, i <= k < base_reach[i] */
    uint32_t *rank;         /* n + 1: x_i is the best place to cut among 2^rank neighbours on either side */
    period_run *run_of;     /* n + 1: the run that a layer is in */
} optimal_model;

/* REMAT_INVALID where sums reach the limit above, REMAT_NO_MEMORY. A model that was not built is all zero. */
remat_status optimal_model_build(remat_context *context, const remat_profile *chain, bool allow_lossy,
                                 optimal_model *model);
void optimal_model_free(remat_context *context, optimal_model *model);

/* Whether the sums of all figures of the chain stay below FIGURE_LIMIT. */
bool optimal_figures_fit(const remat_profile *chain);

/* The mode, or NULL where the layer has no such mode or may not use it. */
const remat_mode *optimal_model_mode(const optimal_model *model, size_t layer, uint32_t mode);

/* Bytes of x_i in a form, i > 0. */
static inline uint64_t optimal_model_x(const optimal_model *model, size_t i, uint32_t form)
{
    return model->forms[form * model->n + i - 1].bytes;
}

/* Lengthens a pass from x_start by one forward, all of it in one form. */
static inline void optimal_pass_extend(const optimal_model *model, uint32_t form, size_t start, size_t layer,
                                       optimal_pass *pass)
{
    const optimal_form *forward = &model->forms[form * model->n + layer];
    pass->cost += forward->cost;
    if (layer == start)
        pass->first = forward->step_bytes;
    else
        pass->rest = remat_max(pass->rest, forward[-1].bytes + forward->step_bytes);
}

/* What is pending at a position: whether it can be, its bytes, and what doing it takes once x of the position is readable:
 * the most bytes, those that are pending included and x not, and the cost. */
bool optimal_pending_exists(const optimal_model *model, size_t position, uint32_t pending);
uint64_t optimal_pending_bytes(const optimal_model *model, size_t position, uint32_t pending);
void optimal_pending_step(const optimal_model *model, size_t position, uint32_t pending, uint64_t *memory,
                          uint64_t *cost);

/* The first start of an interval that looks exactly like start..last, its neighbours included. */
size_t optimal_model_canonical_start(const optimal_model *model, size_t start, size_t last);

/* optimal_periods.c: fills run_of. */
void optimal_find_runs(optimal_model *model);

#endif
