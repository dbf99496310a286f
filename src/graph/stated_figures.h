/* Figures that a plan file states, compared with what its schedule comes to. */
#ifndef REMAT_GRAPH_STATED_FIGURES_H
#define REMAT_GRAPH_STATED_FIGURES_H

#include "base/error.h"

/* How a stated figure must relate to what was found. */
typedef enum stated_relation { STATED_EXACT, STATED_AT_MOST, STATED_AT_LEAST } stated_relation;

typedef struct stated_rule {
    unsigned which; /* the figure's place in the lists below */
    stated_relation relation;
    uint64_t found;
    const char *words; /* before `found` in the message */
} stated_rule;

/* What a file states: a bit of `seen`, a number and a name for each figure. */
typedef struct stated_figures {
    uint64_t seen;
    const uint64_t *numbers;
    const char *const *names;
} stated_figures;

/* REMAT_CHECK_FAILED at `place` for the first figure that breaks its rule. Figures that are not stated are fine. */
remat_status stated_figures_check(remat_context *context, remat_place place, const stated_figures *stated,
                                  const stated_rule *rules, size_t count);

#endif
