/* Many schedules of a long chain are kept at once while a plan is searched. Their steps repeat: a run of forwards, a run of
 * forwards with drops, the same block again a few layers on. A list of runs holds them in little memory. */
#ifndef REMAT_PLAN_GRAPH_STEP_RUNS_H
#define REMAT_PLAN_GRAPH_STEP_RUNS_H

#include <remat/schedule.h>

typedef struct step_run step_run;

typedef struct step_runs {
    step_run *runs;
    size_t count;      /* of runs */
    size_t step_count; /* of steps */
} step_runs;

/* Makes the runs of a list of steps. REMAT_NO_MEMORY: nothing is made. */
remat_status step_runs_make(remat_context *context, const remat_step *steps, size_t count, step_runs *made);
void step_runs_release(remat_context *context, step_runs *runs);

/* Writes the steps again: step_count of them. */
void step_runs_read(const step_runs *runs, remat_step *steps);

#endif
