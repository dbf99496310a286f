/* Plan files through Jansson, so that what our writer wrote is not judged by our reader alone. */
#ifndef TESTS_PLAN_JSON_H
#define TESTS_PLAN_JSON_H

#include "support/fixture.h"
#include "support/slow_replay.h"

#include <jansson.h>

/* The tree of a plan file; the caller calls json_decref. */
json_t *plan_tree(const remat_plan *plan);

/* The number at `key`; the key must be there. */
uint64_t plan_number(const json_t *tree, const char *key);

/* The steps of the tree's schedule; every one must make sense for the profile. */
void plan_tree_steps(const json_t *tree, const remat_profile *profile, step_list *steps);

/* The other way round: a plan file of nothing but these steps. */
json_t *plan_tree_of_steps(const remat_profile *profile, const step_list *steps);

/* Only what a check needs: format, version and the schedule. */
json_t *bare_plan(const json_t *tree);

/* Checks the tree as a file. */
remat_status check_plan_tree(fixture *f, const json_t *tree, const remat_profile *profile, remat_figures *figures);

#endif
