/* What a run shows while it goes on: a bar that is redrawn on a terminal, plain lines elsewhere. Everything goes to
 * stderr. */
#ifndef REMAT_CLI_PROGRESS_H
#define REMAT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <remat/train.h>

typedef struct progress_display {
    bool bar;              /* stderr is a terminal */
    bool quiet;            /* nothing at all */
    uint64_t total;        /* steps; 0: unknown */
    uint64_t samples;      /* a step */
    uint64_t bytes;        /* that the training allocated */
    uint64_t every;        /* lines: one in so many steps */
    uint64_t first;        /* step before the first of this run */
    uint64_t recent_steps; /* since the rate was computed last; the first steps of a run are not typical */
    double recent_seconds, speed;
    double drawn;
} progress_display;

void progress_start(progress_display *progress, const remat_trainer *trainer, uint64_t first_step, bool quiet);
void progress_step(progress_display *progress, const remat_step_result *result);
void progress_validation(progress_display *progress, uint64_t step, const remat_validation_result *result);
void progress_end(progress_display *progress);

#endif
