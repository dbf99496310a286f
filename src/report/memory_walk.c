#include "report/memory_walk.h"

#include <remat/report.h>

#include "base/alloc.h"
#include "base/options.h"
#include "plan/chain/plan_object.h"
#include "graph/chain.h"

const char memory_kind_letters[KIND_COUNT + 1] = "xsyw";

#define NOT_ALIVE UINT64_MAX

/* Since when x_i and s_i are alive, and in which mode s_i was saved. */
typedef struct layer_life {
    uint64_t x, s;
    uint16_t mode;
} layer_life;

typedef struct walker {
    memory_walk *walk;
    const remat_profile *chain;
    layer_life *layers; /* N + 1 */
    size_t y;           /* whose gradient is alive */
    uint64_t y_born;
    uint64_t now;              /* the step */
    uint64_t live[KIND_COUNT]; /* during the step */
} walker;

/* ---- births and deaths ---- */

static remat_status end_life(walker *w, int kind, size_t layer, uint64_t bytes, uint64_t born, uint64_t ends)
{
    memory_walk *walk = w->walk;
    if (walk->columns || bytes == 0 || ends <= born)
        return REMAT_OK;
    void *room = walk->tensors;
    remat_status status =
        remat_grow(walk->context, &room, &walk->tensor_capacity, walk->tensor_count + 1, sizeof *walk->tensors);
    walk->tensors = room;
    if (status != REMAT_OK)
        return status;
    walk->tensors[walk->tensor_count++] = (memory_tensor){bytes, born, ends, (uint32_t)layer, (uint8_t)kind};
    return REMAT_OK;
}

static uint64_t state_bytes(const walker *w, size_t layer)
{
    return w->chain->layers[layer].modes[w->layers[layer].mode].activation_bytes;
}

static void begin_x(walker *w, size_t i)
{
    w->layers[i].x = w->now;
    w->live[KIND_X] += remat_chain_x_bytes(w->chain, i);
}

static remat_status end_x(walker *w, size_t i, uint64_t ends)
{
    uint64_t bytes = remat_chain_x_bytes(w->chain, i), born = w->layers[i].x;
    w->layers[i].x = NOT_ALIVE;
    w->live[KIND_X] -= bytes;
    return end_life(w, KIND_X, i, bytes, born, ends);
}

static remat_status end_state(walker *w, size_t i, uint64_t ends)
{
    uint64_t bytes = state_bytes(w, i), born = w->layers[i].s;
    w->layers[i].s = NOT_ALIVE;
    w->live[KIND_S] -= bytes;
    return end_life(w, KIND_S, i, bytes, born, ends);
}

static remat_status end_y(walker *w, size_t i, uint64_t born, uint64_t ends)
{
    uint64_t bytes = remat_chain_y_bytes(w->chain, i);
    w->live[KIND_Y] -= bytes;
    return end_life(w, KIND_Y, i, bytes, born, ends);
}

/* ---- steps ---- */

/* Notes the step while everything that it needs and makes is alive. */
static remat_status note_step(walker *w, char op, size_t layer, uint64_t cost, uint64_t workspace)
{
    memory_walk *walk = w->walk;
    w->live[KIND_W] = workspace;
    if (!walk->columns) {
        walk->steps[w->now] = (memory_step){cost, (uint32_t)layer, op};
        return end_life(w, KIND_W, layer, workspace, w->now, w->now + 1);
    }
    memory_column *column = &walk->columns[(size_t)((unsigned __int128)w->now * walk->column_count / walk->step_count)];
    uint64_t sum = 0, before = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        sum += w->live[kind];
        before += column->bytes[kind];
    }
    if (column->step != REMAT_NOWHERE && sum <= before)
        return REMAT_OK;
    column->step = w->now;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        column->bytes[kind] = w->live[kind];
    return REMAT_OK;
}

static remat_status walk_forward(walker *w, remat_step step)
{
    size_t i = step.layer;
    bool saves = step.save != REMAT_NO_SAVE;
    const remat_mode *mode = &w->chain->layers[i].modes[saves ? step.save : REMAT_KEEP];
    if (saves) {
        w->layers[i].s = w->now;
        w->layers[i].mode = step.save;
        w->live[KIND_S] += mode->activation_bytes;
    }
    if (!saves || !mode->holds_output)
        begin_x(w, i + 1);
    return note_step(w, saves ? 's' : 'f', i, mode->forward_cost, mode->forward_workspace_bytes);
}

static remat_status walk_loss(walker *w)
{
    w->y = w->chain->layer_count;
    w->y_born = w->now;
    w->live[KIND_Y] += remat_chain_y_bytes(w->chain, w->y);
    return note_step(w, 'l', 0, 0, w->chain->loss_workspace_bytes);
}

static remat_status walk_backward(walker *w, remat_step step)
{
    size_t i = step.layer;
    const remat_mode *mode = &w->chain->layers[i].modes[w->layers[i].mode];
    uint64_t born = w->y_born;
    w->live[KIND_Y] += remat_chain_y_bytes(w->chain, i);
    w->y = i;
    w->y_born = w->now;
    REMAT_TRY(note_step(w, 'b', i, mode->backward_cost, mode->backward_workspace_bytes));
    REMAT_TRY(end_y(w, i + 1, born, w->now + 1));
    return end_state(w, i, w->now + 1);
}

static remat_status walk_step(void *user, remat_step step)
{
    walker *w = user;
    remat_status status = REMAT_OK;
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: status = walk_forward(w, step); break;
    case REMAT_LOSS: status = walk_loss(w); break;
    case REMAT_BACKWARD: status = walk_backward(w, step); break;
    case REMAT_DROP_X:
        status = end_x(w, step.layer, w->now);
        if (status == REMAT_OK)
            status = note_step(w, 'd', step.layer, 0, 0);
        break;
    case REMAT_DROP_STATE:
        status = end_state(w, step.layer, w->now);
        if (status == REMAT_OK)
            status = note_step(w, 'D', step.layer, 0, 0);
        break;
    }
    w->now++;
    return status;
}

/* What is left over lives to the end. */
static remat_status end_all(walker *w)
{
    size_t n = w->chain->layer_count;
    for (size_t i = 0; i <= n; i++) {
        if (w->layers[i].x != NOT_ALIVE)
            REMAT_TRY(end_x(w, i, w->now));
        if (w->layers[i].s != NOT_ALIVE)
            REMAT_TRY(end_state(w, i, w->now));
    }
    return w->y_born == NOT_ALIVE ? REMAT_OK : end_y(w, w->y, w->y_born, w->now);
}

/* ---- the whole ---- */

static remat_status make_room(memory_walk *walk, size_t steps_shown, size_t columns)
{
    if (walk->step_count <= steps_shown) {
        walk->step_capacity = walk->step_count;
        walk->steps = remat_alloc_zeroed(walk->context, walk->step_capacity, sizeof *walk->steps);
        return walk->steps ? REMAT_OK : REMAT_NO_MEMORY;
    }
    walk->column_count = walk->step_count < columns ? walk->step_count : columns;
    walk->columns = remat_alloc_zeroed(walk->context, walk->column_count, sizeof *walk->columns);
    if (!walk->columns)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < walk->column_count; i++)
        walk->columns[i].step = REMAT_NOWHERE;
    return REMAT_OK;
}

remat_status memory_walk_plan(const remat_plan *plan, size_t steps_shown, size_t columns, memory_walk *walk)
{
    remat_context *context = plan->context;
    const remat_profile *profile = plan->chain;
    *walk = (memory_walk){.context = context, .step_count = plan->figures.schedule.steps};
    size_t n = profile->layer_count;
    walker w = {.walk = walk, .chain = profile, .y_born = NOT_ALIVE};
    w.layers = remat_alloc(context, n + 1, sizeof *w.layers);
    remat_status status = w.layers ? make_room(walk, steps_shown, columns) : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        for (size_t i = 0; i <= n; i++)
            w.layers[i] = (layer_life){NOT_ALIVE, NOT_ALIVE, REMAT_KEEP};
        begin_x(&w, 0);
        status = remat_plan_walk(plan, walk_step, &w);
    }
    if (status == REMAT_OK)
        status = end_all(&w);
    remat_release(context, w.layers, n + 1, sizeof *w.layers);
    if (status != REMAT_OK)
        memory_walk_clear(walk);
    return status;
}

void memory_walk_clear(memory_walk *walk)
{
    remat_release(walk->context, walk->tensors, walk->tensor_capacity, sizeof *walk->tensors);
    if (walk->steps)
        remat_release(walk->context, walk->steps, walk->step_capacity, sizeof *walk->steps);
    if (walk->columns)
        remat_release(walk->context, walk->columns, walk->column_count, sizeof *walk->columns);
    *walk = (memory_walk){.context = walk->context};
}

remat_status remat_plan_memory_sized(const remat_plan *plan, remat_memory_column *columns, size_t column_size,
                                     size_t count, size_t *used)
{
    *used = 0;
    if (plan->figures.feasible && (plan->figures.schedule.steps == 0 || count == 0))
        return REMAT_OK;
    memory_walk walk;
    REMAT_TRY(memory_walk_plan(plan, 0, count, &walk));
    for (size_t i = 0; i < walk.column_count; i++) {
        const uint64_t *bytes = walk.columns[i].bytes;
        const remat_memory_column column = {walk.columns[i].step, bytes[KIND_X], bytes[KIND_S], bytes[KIND_Y],
                                            bytes[KIND_W]};
        remat_struct_give((char *)columns + i * column_size, column_size, &column, sizeof column);
    }
    *used = walk.column_count;
    memory_walk_clear(&walk);
    return REMAT_OK;
}
