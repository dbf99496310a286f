/* Writes the steps of a schedule, as schedule_reader.h reads them. */
#ifndef REMAT_GRAPH_SCHEDULE_WRITER_H
#define REMAT_GRAPH_SCHEDULE_WRITER_H

#include <remat/schedule.h>

#include "base/output.h"
#include "graph/chain.h"

typedef struct schedule_writer {
    output *out;
    const remat_profile *chain;
    uint64_t count; /* of steps written; 0 at first */
} schedule_writer;

/* A remat_step_fn: writes one step, with what separates it from the one before. */
remat_status schedule_write_step(void *writer, remat_step step);

#endif
