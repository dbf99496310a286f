/* How the optimal planner solves: by searching all schedules of a short chain, or over intervals. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_METHOD_H
#define REMAT_PLAN_CHAIN_OPTIMAL_METHOD_H

#include "plan/chain/strategy.h"

typedef enum optimal_method { METHOD_EXHAUSTIVE, METHOD_INTERVALS } optimal_method;

/* The method that the options ask for; by default the search where the chain is short enough for it. */
remat_status optimal_method_choose(remat_context *context, const remat_profile *chain,
                                   const remat_plan_options *options, optimal_method *method);
const char *optimal_method_name(optimal_method method);
/* The name as the library spells it, or NULL where there is no such method. */
const char *optimal_method_find(const char *name);

#endif
