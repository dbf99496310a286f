#include "report/memory_walk.h"

#include <remat/report.h>

#include "base/alloc.h"
#include "base/options.h"
#include "plan/chain/plan_object.h"
#include "graph/chain.h"
#include "graph/step_effect.h"

const char memory_kind_letters[KIND_COUNT + 1] = "xsyw";

#define NOT_LIVE UINT64_MAX

/* Since when x_i, s_i and y_i are live, by kind. */
typedef struct layer_births {
    uint64_t born[KIND_W];
} layer_births;

typedef struct walker {
    memory_walk *walk;
    remat_simulator *simulator;
    layer_births *layers; /* N + 1 */
    uint64_t now;         /* the step */
    uint64_t live[KIND_COUNT];
} walker;

static int kind_of(char letter)
{
    return letter == 'x' ? KIND_X : letter == 's' ? KIND_S : KIND_Y;
}

/* ---- tensors ---- */

static remat_status add_tensor(memory_walk *walk, memory_tensor tensor)
{
    if (walk->columns || tensor.bytes == 0 || tensor.ends <= tensor.born)
        return REMAT_OK;
    REMAT_TRY(remat_grow(walk->context, (void **)&walk->tensors, &walk->tensor_capacity, walk->tensor_count + 1,
                         sizeof *walk->tensors));
    walk->tensors[walk->tensor_count++] = tensor;
    return REMAT_OK;
}

static void begin_tensor(walker *w, remat_live_tensor made)
{
    w->layers[made.layer].born[kind_of(made.kind)] = w->now;
    w->live[kind_of(made.kind)] += made.bytes;
}

static remat_status end_tensor(walker *w, remat_live_tensor ended, uint64_t ends)
{
    int kind = kind_of(ended.kind);
    uint64_t *born = &w->layers[ended.layer].born[kind], since = *born;
    *born = NOT_LIVE;
    w->live[kind] -= ended.bytes;
    return add_tensor(w->walk, (memory_tensor){ended.bytes, since, ends, ended.layer, (uint8_t)kind});
}

/* ---- steps ---- */

static char letter_of(remat_step step)
{
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: return step.save == REMAT_NO_SAVE ? 'f' : 's';
    case REMAT_LOSS: return 'l';
    case REMAT_BACKWARD: return 'b';
    case REMAT_DROP_X: return 'd';
    default: return 'D';
    }
}

/* Notes the step while everything that it needs and makes is live. */
static remat_status note_step(walker *w, remat_step step, const step_effect *effect)
{
    memory_walk *walk = w->walk;
    w->live[KIND_W] = effect->workspace_bytes;
    if (!walk->columns) {
        walk->steps[w->now] = (memory_step){effect->cost, step.layer, letter_of(step)};
        return add_tensor(walk, (memory_tensor){effect->workspace_bytes, w->now, w->now + 1, step.layer, KIND_W});
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

static remat_status walk_step(void *user, remat_step step)
{
    walker *w = user;
    REMAT_TRY(remat_simulator_step(w->simulator, step));
    const step_effect *effect = simulator_effect(w->simulator);
    bool is_drop = step.op == REMAT_DROP_X || step.op == REMAT_DROP_STATE;
    for (uint32_t k = 0; k < effect->made_count; k++)
        begin_tensor(w, effect->made[k]);
    if (!is_drop)
        REMAT_TRY(note_step(w, step, effect));
    for (uint32_t k = 0; k < effect->ended_count; k++)
        REMAT_TRY(end_tensor(w, effect->ended[k], is_drop ? w->now : w->now + 1));
    if (is_drop)
        REMAT_TRY(note_step(w, step, effect));
    w->now++;
    return REMAT_OK;
}

typedef struct last_tensors {
    walker *w;
    remat_status status;
} last_tensors;

/* What is left over lives to the end. */
static void end_last(void *user, remat_live_tensor tensor)
{
    last_tensors *last = user;
    if (last->status == REMAT_OK)
        last->status = end_tensor(last->w, tensor, last->w->now);
}

static remat_status walk_all(walker *w, const remat_plan *plan)
{
    for (size_t i = 0; i <= plan->chain->layer_count; i++)
        w->layers[i] = (layer_births){{NOT_LIVE, NOT_LIVE, NOT_LIVE}};
    begin_tensor(w, (remat_live_tensor){'x', 0, plan->chain->input_bytes});
    simulator_list_tensors(w->simulator);
    REMAT_TRY(remat_plan_walk(plan, walk_step, w));
    last_tensors last = {w, REMAT_OK};
    remat_simulator_live(w->simulator, end_last, &last);
    return last.status;
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
    *walk = (memory_walk){.context = context, .step_count = plan->figures.schedule.steps};
    size_t layers = plan->chain->layer_count + 1;
    walker w = {.walk = walk};
    w.layers = remat_alloc(context, layers, sizeof *w.layers);
    remat_status status = w.layers ? make_room(walk, steps_shown, columns) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = remat_simulator_create(context, plan->chain, &w.simulator);
    if (status == REMAT_OK)
        status = walk_all(&w, plan);
    remat_simulator_destroy(w.simulator);
    remat_release(context, w.layers, layers, sizeof *w.layers);
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
