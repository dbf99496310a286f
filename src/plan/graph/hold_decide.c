#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/hold_state.h"

/* The first run of an action is the one at its own position; all others belong to cascades. */
typedef struct schedule_reader {
    const hold_graph *g;
    const uint32_t *actions;
    size_t count;
    uint32_t *first_run;  /* by position: an index into actions; `count` for the end; GRAPH_NONE: it never runs */
    uint32_t *next_own;   /* by index: the position whose own run comes next */
    uint32_t *last_write; /* by tensor: an index */
    uint32_t *from;
} schedule_reader;

static void find_runs(schedule_reader *r)
{
    uint32_t end = r->g->action_count;
    for (uint32_t i = 0; i < end; i++)
        r->first_run[i] = GRAPH_NONE;
    for (size_t i = r->count; i-- > 0;)
        r->first_run[r->actions[i]] = (uint32_t)i;
    r->first_run[end] = (uint32_t)r->count;
    r->next_own[r->count] = end;
    for (size_t i = r->count; i-- > 0;)
        r->next_own[i] = r->first_run[r->actions[i]] == i ? r->actions[i] : r->next_own[i + 1];
}

/* A read at `index` within the gap: the tensor was held if nothing made it since the gap began. */
static void decide(schedule_reader *r, uint32_t number, uint32_t tensor)
{
    const hold_gap *gap = &r->g->gaps[number];
    uint32_t write = r->last_write[tensor], begin = r->first_run[gap->begin];
    if (begin != GRAPH_NONE && write <= begin) {
        r->from[number] = gap->begin;
        return;
    }
    uint32_t from = r->next_own[write];
    r->from[number] = from <= gap->begin ? gap->begin + 1 : from > gap->end ? gap->end : from;
}

static void read_run(schedule_reader *r, uint32_t number, uint32_t index)
{
    const hold_action *action = &r->g->actions[number];
    bool is_own = r->first_run[number] == index;
    for (uint32_t i = 0; i < action->read_count; i++) {
        uint32_t tensor = action->reads[i];
        if (r->g->tensors[tensor].maker == GRAPH_NONE)
            continue;
        uint32_t gap = hold_gap_before(r->g, tensor, is_own ? number : r->next_own[index]);
        if (gap != GRAPH_NONE && (is_own || r->g->gaps[gap].end == HOLD_TAIL))
            decide(r, gap, tensor);
    }
    for (uint32_t i = 0; i < action->write_count && index < r->count; i++)
        r->last_write[action->writes[i]] = index;
}

remat_status hold_state_decide_like(const hold_graph *g, const uint32_t *actions, size_t count, uint32_t *from)
{
    remat_context *context = g->graph->context;
    schedule_reader r = {.g = g, .actions = actions, .count = count, .from = from};
    r.first_run = remat_alloc(context, g->position_count, sizeof *r.first_run);
    r.next_own = remat_alloc(context, count + 1, sizeof *r.next_own);
    r.last_write = remat_alloc_zeroed(context, g->tensor_count, sizeof *r.last_write);
    remat_status status = r.first_run && r.next_own && r.last_write ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        find_runs(&r);
        for (uint32_t i = 0; i < g->gap_count; i++)
            from[i] = g->gaps[i].begin + 1;
        for (size_t i = 0; i < count; i++)
            read_run(&r, actions[i], (uint32_t)i);
        read_run(&r, g->action_count, (uint32_t)count);
    }
    remat_release(context, r.first_run, g->position_count, sizeof *r.first_run);
    remat_release(context, r.next_own, count + 1, sizeof *r.next_own);
    remat_release(context, r.last_write, g->tensor_count, sizeof *r.last_write);
    return status;
}
