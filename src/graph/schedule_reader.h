/* Reads the file of a schedule (a plan file) as a stream: its steps, and what it states about them. */
#ifndef REMAT_GRAPH_SCHEDULE_READER_H
#define REMAT_GRAPH_SCHEDULE_READER_H

#include <remat/schedule.h>

#include "graph/chain.h"

/* What became of one layer. */
typedef struct layer_outcome {
    uint32_t forwards;
    uint16_t decision; /* a mode's number, REMAT_NO_SAVE for recomputed */
} layer_outcome;

/* What a layer of the file does not say. */
#define DECISION_NOT_STATED 0xfffe
#define FORWARDS_NOT_STATED UINT32_MAX

/* The numbers that the file may state. */
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
    STATED_ARENA, /* this and the rest say what a model's plan comes to: not a matter of the chain */
    STATED_TOTAL,
    STATED_TOTAL_BUDGET,
    STATED_MIN_TOTAL_BUDGET,
    STATED_KEEP_ALL_TOTAL,
    STATED_MODEL_LAYERS,
    STATED_RECOMPUTED_MODEL_LAYERS,
    STATED_COUNT
};
extern const char *const schedule_stated_names[STATED_COUNT];

typedef struct schedule_stated {
    uint64_t seen; /* a bit for each number below, and one for each other key */
    uint64_t numbers[STATED_COUNT];
    bool feasible, has_schedule, has_layers;
    char strategy[128], method[32], remark[320];
    layer_outcome *layers; /* one a layer, where has_layers */
} schedule_stated;

/* Reads the whole file. Every step of its schedule goes to `visit`; a failure of that is put at the step's line. */
remat_status schedule_read_stream(remat_context *context, FILE *stream, const char *name, const remat_profile *chain,
                                  schedule_stated *stated, remat_step_fn visit, void *user);
void schedule_stated_clear(remat_context *context, const remat_profile *chain, schedule_stated *stated);

static inline bool schedule_states(const schedule_stated *stated, unsigned which)
{
    return stated->seen >> which & 1;
}

#endif
