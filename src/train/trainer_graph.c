/* The graph of a training step and its schedule, for other programs. */
#include "base/output_file.h"
#include "plan/graph/graph_plan_file.h"
#include "train/trainer_object.h"

const remat_graph *remat_trainer_graph(const remat_trainer *trainer)
{
    return trainer->program->graph;
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
    graph_plan_content content; /* without the budget, which is for all memory, not for what the graph has */
    graph_plan_content_init(&placed, &content);
    content.numbers[PLAN_BASE_COST] = plan->base_cost;
    return graph_plan_file_write(plan->graph, &content, stream);
}

remat_status remat_trainer_write_graph_plan(const remat_trainer *trainer, FILE *stream)
{
    return write_plan(trainer, stream);
}

remat_status remat_trainer_save_graph_plan(const remat_trainer *trainer, const char *path)
{
    return output_save(trainer->context, path, write_plan, trainer);
}
