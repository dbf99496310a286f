/* All strategies side by side, for `remat plan --compare`. */
#ifndef REMAT_CLI_COMPARE_H
#define REMAT_CLI_COMPARE_H

#include "command.h"

/* Makes plans with every strategy, with several arguments if the strategy takes one, and prints peak, cost and whether
 * the plan fits the budget of `options`. */
remat_status compare_print(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                           bool json);

#endif
