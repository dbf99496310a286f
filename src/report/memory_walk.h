/* The memory of a schedule: the live range of each tensor, and the bytes of each kind in each step.
 *
 * A tensor is live during the steps born ... ends-1. The output and the workspace of a step, and the tensors that it
 * consumes, are live while it runs. A dropped tensor is no longer live in the step that drops it. So the bytes that are
 * live in a step sum to the third column of docs/memory-model.md, and the largest sum is the peak. */
#ifndef REMAT_REPORT_MEMORY_WALK_H
#define REMAT_REPORT_MEMORY_WALK_H

#include <remat/plan.h>

#include "base/error.h"

enum { KIND_X, KIND_S, KIND_Y, KIND_W, KIND_COUNT };
extern const char memory_kind_letters[KIND_COUNT + 1]; /* "xsyw" */

typedef struct memory_tensor {
    uint64_t bytes, born, ends;
    uint32_t layer;
    uint8_t kind;
} memory_tensor;

typedef struct memory_step {
    uint64_t cost;
    uint32_t layer;
    char op; /* f forward, s forward that saves, l loss, b backward, d drop x, D drop s */
} memory_step;

/* The live bytes of the step that needs the most, among those of one column. */
typedef struct memory_column {
    uint64_t step, bytes[KIND_COUNT];
} memory_column;

/* Schedules up to this long are shown step by step, longer ones in columns. */
enum { MEMORY_STEPS_SHOWN = 200000, MEMORY_COLUMNS = 4096 };

typedef struct memory_walk {
    remat_context *context;
    memory_tensor *tensors; /* in the order in which they end; none of 0 bytes */
    size_t tensor_count, tensor_capacity;
    memory_step *steps;
    size_t step_count; /* also if the steps themselves are not kept */
    size_t step_capacity;
    memory_column *columns; /* NULL if every step is shown */
    size_t column_count;
} memory_walk;

/* Walks the plan's schedule: step by step up to `steps_shown` steps, in at most `columns` columns beyond. */
remat_status memory_walk_plan(const remat_plan *plan, size_t steps_shown, size_t columns, memory_walk *walk);
void memory_walk_clear(memory_walk *walk);

#endif
