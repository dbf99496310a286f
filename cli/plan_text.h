/* A plan for people. */
#ifndef REMAT_CLI_PLAN_TEXT_H
#define REMAT_CLI_PLAN_TEXT_H

#include "command.h"

/* Prints the table of layers (all of them, or the ends of a long list), the peak, the cost and what was saved. */
remat_status plan_text_print(const remat_profile *profile, const remat_plan *plan, bool all_layers);

#endif
