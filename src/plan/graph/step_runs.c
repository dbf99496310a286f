#include "plan/graph/step_runs.h"

#include "base/alloc.h"
#include "base/error.h"

/* How many steps back a step may look for one like it. */
enum { LONGEST_PERIOD = 16 };

/* Without a period: one step. With one: `count` steps, each the step `period` before it with `layer` added to its layer,
 * modulo 2^32. */
struct step_run {
    uint32_t layer;
    uint16_t save;
    uint8_t op, period;
    uint32_t count;
};

static bool is_like(remat_step step, remat_step before, uint32_t more)
{
    return step.op == before.op && step.save == before.save && step.layer == before.layer + more;
}

/* The longest run that begins at step `at`; of equals, the one with the shortest period. */
static step_run find_run(const remat_step *steps, size_t count, size_t at)
{
    step_run best = {steps[at].layer, steps[at].save, steps[at].op, 0, 1};
    for (uint8_t period = 1; period <= LONGEST_PERIOD && period <= at; period++) {
        uint32_t more = steps[at].layer - steps[at - period].layer;
        size_t end = at;
        while (end < count && end - at < UINT32_MAX && is_like(steps[end], steps[end - period], more))
            end++;
        if (end - at > best.count)
            best = (step_run){more, 0, 0, period, (uint32_t)(end - at)};
    }
    return best;
}

static remat_status add_runs(remat_context *context, const remat_step *steps, step_runs *made, size_t *capacity)
{
    for (size_t at = 0; at < made->step_count; at += made->runs[made->count++].count) {
        REMAT_TRY(remat_grow(context, (void **)&made->runs, capacity, made->count + 1, sizeof *made->runs));
        made->runs[made->count] = find_run(steps, made->step_count, at);
    }
    return remat_fit(context, (void **)&made->runs, capacity, made->count, sizeof *made->runs);
}

remat_status step_runs_make(remat_context *context, const remat_step *steps, size_t count, step_runs *made)
{
    size_t capacity = 0;
    *made = (step_runs){.step_count = count};
    remat_status status = add_runs(context, steps, made, &capacity);
    if (status != REMAT_OK) {
        remat_release(context, made->runs, capacity, sizeof *made->runs);
        *made = (step_runs){0};
    }
    return status;
}

void step_runs_release(remat_context *context, step_runs *runs)
{
    remat_release(context, runs->runs, runs->count, sizeof *runs->runs);
    *runs = (step_runs){0};
}

void step_runs_read(const step_runs *runs, remat_step *steps)
{
    remat_step *next = steps;
    for (size_t i = 0; i < runs->count; i++) {
        const step_run *run = &runs->runs[i];
        for (uint32_t k = 0; k < run->count; k++, next++) {
            *next = run->period ? *(next - run->period) : (remat_step){0, run->save, run->op};
            next->layer += run->layer;
        }
    }
}
