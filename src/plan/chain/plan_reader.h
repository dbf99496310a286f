/* Reading a plan file as a stream: the one reader behind remat_plan_check and remat_plan_read. */
#ifndef REMAT_PLAN_CHAIN_PLAN_READER_H
#define REMAT_PLAN_CHAIN_PLAN_READER_H

#include "plan/chain/plan_object.h"

/* What a layer of the file does not say. */
#define DECISION_NOT_STATED 0xfffe
#define FORWARDS_NOT_STATED UINT32_MAX

/* The numbers a plan file may state. */
enum {
    STATED_BUDGET,
    STATED_PEAK,
    STATED_KEPT,
    STATED_ESTIMATED,
    STATED_TOTAL_COST,
    STATED_BASE_COST,
    STATED_BASE_PEAK,
    STATED_LOWER_BOUND,
    STATED_FLOPS,
    STATED_MIN_BUDGET,
    STATED_STEPS,
    STATED_KEPT_BUDGET,
    STATED_METHOD_BOUND,
    STATED_ARENA, /* this and the next two say what a model's plan comes to: not a matter of the chain */
    STATED_TOTAL,
    STATED_TOTAL_BUDGET,
    STATED_COUNT
};
extern const char *const plan_stated_names[STATED_COUNT];

typedef struct plan_stated {
    uint64_t seen; /* a bit for each number below, and one for each other key */
    uint64_t numbers[STATED_COUNT];
    bool feasible, has_schedule, has_layers;
    char strategy[128], method[32], remark[320];
    layer_outcome *layers; /* one a layer, where has_layers */
} plan_stated;

/* Reads the whole file. Every step of its schedule goes to `visit`; a failure of that is put at the step's line. */
remat_status plan_read_stream(remat_context *context, FILE *stream, const char *name, const remat_profile *chain,
                              plan_stated *stated, remat_step_fn visit, void *user);
void plan_stated_clear(remat_context *context, const remat_profile *chain, plan_stated *stated);

static inline bool plan_is_stated(const plan_stated *stated, unsigned which)
{
    return stated->seen >> which & 1;
}

#endif
