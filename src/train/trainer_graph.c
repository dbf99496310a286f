/* The graph of a training step and its schedule, for other programs. */
#include "base/output_file.h"
#include "plan/graph/graph_plan_file.h"
#include "train/trainer_object.h"

const remat_graph *remat_trainer_graph(const remat_trainer *trainer)
{
    return trainer->program->graph;
}

static remat_status write_placed(const graph_plan *plan, const placed_graph *placed, FILE *stream)
{
    graph_plan_content content; /* without the budget, which is for all memory, not for what the graph has */
    graph_plan_content_init(placed, &content);
    content.numbers[PLAN_BASE_COST] = plan->base_cost;
    return graph_plan_file_write(plan->graph, &content, stream);
}

/* A file has workspaces at their own positions only: where gathers begin early, it has the places that the schedule has without. */
static remat_status write_plain(const graph_plan *plan, FILE *stream)
{
    remat_context *context = plan->graph->context;
    graph_sequence sequence = {0};
    placed_graph placed;
    for (size_t i = 0; i < plan->sequence.count; i++) {
        remat_status status = graph_sequence_add(context, &sequence, plan->sequence.actions[i]);
        if (status != REMAT_OK) {
            graph_sequence_release(context, &sequence);
            return status;
        }
    }
    REMAT_TRY(graph_place(plan->graph, &sequence, &placed));
    remat_status status = write_placed(plan, &placed, stream);
    placed_graph_release(&placed);
    return status;
}

static remat_status write_plan(const void *user, FILE *stream)
{
    const remat_trainer *trainer = user;
    const graph_plan *plan = trainer->plan;
    const placed_graph placed = {.context = trainer->context,
                                 .sequence = plan->sequence,
                                 .liveness = plan->liveness,
                                 .offsets = plan->offsets,
                                 .arena_bytes = plan->arena_bytes};
    return trainer->program->fetches ? write_plain(plan, stream) : write_placed(plan, &placed, stream);
}

remat_status remat_trainer_write_graph_plan(const remat_trainer *trainer, FILE *stream)
{
    return write_plan(trainer, stream);
}

remat_status remat_trainer_save_graph_plan(const remat_trainer *trainer, const char *path)
{
    return output_save(trainer->context, path, write_plan, trainer);
}
