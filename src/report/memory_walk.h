/* A schedule seen as memory: which tensor lives from when to when, and what each step holds by kind.
 *
 * A tensor lives during the steps born ... ends-1. A step's own output and workspace live while it runs, and so does
 * what it consumes; what a drop drops is gone in its step. So the bytes alive during a step add up to the number in
 * the third column of docs/memory-model.md, and their largest sum is the peak. */
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

/* What is alive during the fullest step among those of one column. */
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
    size_t step_count; /* also where the steps themselves are not kept */
    size_t step_capacity;
    memory_column *columns; /* NULL where every step is shown */
    size_t column_count;
} memory_walk;

/* Walks the plan's schedule: step by step up to `steps_shown` steps, in at most `columns` columns beyond. */
remat_status memory_walk_plan(const remat_plan *plan, size_t steps_shown, size_t columns, memory_walk *walk);
void memory_walk_clear(memory_walk *walk);

#endif
