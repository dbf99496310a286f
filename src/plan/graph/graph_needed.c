#include "plan/graph/graph_needed.h"

#include "base/alloc.h"
#include "base/error.h"

typedef struct tensor_note {
    uint32_t writers;
    bool needed;
} tensor_note;

/* From the last action to the first: readers come behind writers. */
static void walk_back(const remat_graph *graph, shared_writers shared, tensor_note *notes, bool *needed)
{
    for (size_t i = graph->action_count; i-- > 0;) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
        needed[i] = action->once;
        for (size_t k = 0; k < action->write_count; k++) {
            const tensor_note *note = &notes[writes[k]];
            needed[i] |= note->needed && (note->writers == 1 || shared == NEEDS_ALL);
        }
        for (size_t k = 0; needed[i] && k < graph_need_count(action); k++)
            notes[needs[k]].needed = true;
    }
}

remat_status graph_needed_find(const remat_graph *graph, shared_writers shared, bool *needed)
{
    tensor_note *notes = remat_alloc_zeroed(graph->context, graph->tensor_count, sizeof *notes);
    if (!notes)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        for (size_t k = 0; k < action->write_count; k++)
            notes[graph_writes(graph, action)[k]].writers++;
    }
    for (size_t i = 0; i < graph->result_count; i++)
        notes[graph->results[i]].needed = true;
    walk_back(graph, shared, notes, needed);
    remat_release(graph->context, notes, graph->tensor_count, sizeof *notes);
    return REMAT_OK;
}
