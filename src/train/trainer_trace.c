/* Watching the actions of a step. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/trainer_object.h"

static void fill_live_bytes(const graph_lives *lives, size_t positions, uint64_t *live)
{
    /* First the changes, which wrap where bytes go; then their sums. */
    for (size_t b = 0; b < lives->buffer_count; b++) {
        const graph_buffer *buffer = &lives->buffers[b];
        live[buffer->born] += buffer->bytes;
        if (buffer->ends < positions)
            live[buffer->ends] -= buffer->bytes;
    }
    for (size_t position = 1; position < positions; position++)
        live[position] += live[position - 1];
}

remat_status remat_trainer_on_action(remat_trainer *trainer, remat_action_fn visit, void *user)
{
    size_t positions = trainer->plan ? trainer->plan->sequence.count : 0;
    if (visit && !trainer->live_bytes) {
        trainer->live_bytes = remat_alloc_zeroed(trainer->context, positions, sizeof *trainer->live_bytes);
        if (!trainer->live_bytes)
            return REMAT_NO_MEMORY;
        fill_live_bytes(&trainer->plan->lives, positions, trainer->live_bytes);
    } else if (!visit) {
        remat_release(trainer->context, trainer->live_bytes, positions, sizeof *trainer->live_bytes);
        trainer->live_bytes = NULL;
    }
    trainer->on_action = visit;
    trainer->on_action_user = user;
    return REMAT_OK;
}

static uint64_t flops_of(const remat_trainer *trainer, const graph_action *action)
{
    const network_layer *layer = &trainer->network->layers[action->layer];
    switch (action->kind) {
    case GRAPH_FORWARD: return layer->node.forward_flops;
    case GRAPH_GRADIENT: return layer->node.gradient_flops;
    case GRAPH_DERIVATIVE: return layer->node.derivative_flops;
    case GRAPH_APPLY:
    case GRAPH_LOAD:
    case GRAPH_FINISH: break;
    }
    return 0;
}

/* Tensors read once, written once, updated twice; parameters once, and three times with two moments in an apply. */
static uint64_t bytes_of(const remat_trainer *trainer, const graph_action *action)
{
    const remat_graph *graph = trainer->program->graph;
    const uint32_t *links = graph_reads(graph, action);
    size_t once = (size_t)action->read_count + action->write_count;
    uint64_t bytes = action->workspace_bytes;
    for (size_t i = 0; i < once + action->update_count; i++)
        bytes += graph->tensors[links[i]].bytes * (i < once ? 1 : 2);
    const network_layer *layer = &trainer->network->layers[action->layer];
    uint64_t factor = action->kind == GRAPH_APPLY ? 2 + 2 * (uint64_t)(trainer->moments[0].bytes != 0) +
                                                        2 * (uint64_t)(trainer->moments[1].bytes != 0)
                                                  : action->kind != GRAPH_GRADIENT;
    for (uint32_t p = 0; p < layer->node.parameter_count; p++)
        bytes += factor * trainer->network->parameters[layer->parameters[p]].values * sizeof(real);
    return bytes;
}

void trainer_observe(void *user, size_t position, bool again, uint64_t began, uint64_t ended)
{
    remat_trainer *trainer = user;
    const remat_graph *graph = trainer->program->graph;
    uint32_t number = trainer->plan->sequence.actions[position];
    const graph_action *action = &graph->actions[number];
    static const char *const names[] = {"load", "forward", "gradient", "derivative", "apply", "finish"};
    const remat_action seen = {.layer = graph->layers[action->layer].name,
                               .what = again ? "recompute" : names[action->kind],
                               .position = action->layer,
                               .began = began,
                               .ended = ended,
                               .live_bytes = trainer->live_bytes[position],
                               .flops = flops_of(trainer, action),
                               .bytes = bytes_of(trainer, action)};
    trainer->on_action(trainer->on_action_user, &seen);
}
