/* Watching the actions of a step. */
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/executor_object.h"
#include "train/optimizer.h"
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

/* ---- what an action does ---- */

/* Operations on one value, as the kernels write them; a division and a root count one each. */
static uint64_t optimizer_flops(const optimizer_settings *optimizer)
{
    if (optimizer->type != OPTIMIZER_SGD)
        return 17;
    return optimizer->momentum == 0 ? 5 : optimizer->nesterov ? 9 : 7;
}

/* The gradient is read; the weight and its moments are read and written. */
static layer_work apply_work(const remat_trainer *trainer, uint32_t parameter)
{
    uint64_t values = trainer->network->parameters[parameter].values;
    uint64_t passes = 3 + 2 * (uint64_t)optimizer_moments(&trainer->optimizer);
    return (layer_work){.flops = values * optimizer_flops(&trainer->optimizer),
                        .bytes = passes * values * sizeof(real)};
}

static layer_work applied_work(const remat_trainer *trainer, const prepared_step *step)
{
    const program_binding *binding = &trainer->program->bindings[step->action];
    const network_layer *layer = &trainer->network->layers[step->layer];
    layer_work sum = {0};
    for (uint32_t p = 0; p < layer->node.parameter_count; p++)
        if (binding->gradients[p] != GRAPH_NONE) {
            layer_work one = apply_work(trainer, layer->parameters[p]);
            sum.flops += one.flops;
            sum.bytes += one.bytes;
        }
    return sum;
}

/* Parameters: a forward reads all of them, a derivative the first, because none needs a bias. Gradients that live over
 * several runs are no tensors of the graph: they are added to. */
static uint64_t parameter_bytes(const remat_trainer *trainer, const prepared_step *step)
{
    const program_binding *binding = &trainer->program->bindings[step->action];
    const network_layer *layer = &trainer->network->layers[step->layer];
    bool derives = step->kind == GRAPH_DERIVATIVE && !layer->node.passes_gradient;
    uint64_t values = 0;
    for (uint32_t p = 0; p < layer->node.parameter_count; p++) {
        bool read = step->kind == GRAPH_FORWARD || (derives && p == 0);
        bool added = binding->gradients[p] == GRAPH_NONE && binding->accumulate_gradients >> p & 1u;
        values += (uint64_t)(read + 2 * added) * trainer->network->parameters[layer->parameters[p]].values;
    }
    return values * sizeof(real);
}

/* Tensors read once, written once, updated twice. */
static uint64_t tensor_bytes(const remat_graph *graph, const graph_action *action)
{
    const uint32_t *links = graph_reads(graph, action);
    size_t once = (size_t)action->read_count + action->write_count;
    uint64_t bytes = action->workspace_bytes;
    for (size_t i = 0; i < once + action->update_count; i++)
        bytes += graph->tensors[links[i]].bytes * (i < once ? 1 : 2);
    return bytes;
}

static layer_work work_of(const remat_trainer *trainer, const prepared_step *step)
{
    const layer_node *node = &trainer->network->layers[step->layer].node;
    const remat_graph *graph = trainer->program->graph;
    layer_work work = {.bytes = tensor_bytes(graph, &graph->actions[step->action]) + parameter_bytes(trainer, step)};
    layer_pass pass = LAYER_FORWARD;
    uint32_t output = trainer->program->bindings[step->action].output;
    switch (step->kind) {
    case GRAPH_FORWARD:
        if (node->loss && node->forward_flops == 0)
            return (layer_work){0}; /* its derivative does everything */
        work.flops = node->forward_flops;
        if (output != GRAPH_NONE && !step->call.output)
            work.bytes -= graph->tensors[output].bytes; /* nobody reads it, so it is not made */
        break;
    case GRAPH_GRADIENT:
        pass = LAYER_GRADIENT;
        work.flops = node->gradient_flops;
        break;
    case GRAPH_DERIVATIVE:
        pass = LAYER_DERIVATIVE;
        work.flops = node->derivative_flops;
        break;
    case GRAPH_APPLY: return applied_work(trainer, step);
    case GRAPH_LOAD:
    case GRAPH_FINISH: return (layer_work){0}; /* the data is there, the results stay where they are */
    }
    work.product_flops = node->type->multiplies ? work.flops : 0;
    if (node->type->correct_work)
        node->type->correct_work(node, pass, &step->call, &work);
    return work;
}

/* ---- who is told ---- */

static void report(const remat_trainer *trainer, remat_action seen, layer_work work)
{
    seen.flops = work.flops;
    seen.bytes = work.bytes;
    seen.product_flops = work.product_flops;
    trainer->on_action(trainer->on_action_user, &seen);
}

void trainer_observe(void *user, size_t position, bool again, uint64_t began, uint64_t ended)
{
    const remat_trainer *trainer = user;
    const prepared_step *step = &trainer->executor->steps[position];
    static const char *const names[] = {"load", "forward", "gradient", "derivative", "apply", "finish"};
    const remat_action seen = {.layer = trainer->network->layers[step->layer].node.name,
                               .what = again ? "recompute" : names[step->kind],
                               .position = step->layer,
                               .began = began,
                               .ended = ended,
                               .live_bytes = trainer->live_bytes[position]};
    report(trainer, seen, work_of(trainer, step));
}

uint64_t trainer_clock(const remat_trainer *trainer)
{
    struct timespec now = {0};
    if (trainer->on_action)
        clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void trainer_note_apply(const remat_trainer *trainer, uint32_t parameter, uint64_t began)
{
    if (!trainer->on_action)
        return;
    uint32_t layer = trainer->program->applied[parameter];
    const remat_action seen = {.layer = trainer->network->layers[layer].node.name,
                               .what = "apply",
                               .position = layer,
                               .began = began,
                               .ended = trainer_clock(trainer)};
    report(trainer, seen, apply_work(trainer, parameter));
}

/* In the arena while all gradients are whole: nothing where they have an area of their own. */
static uint64_t live_at_end(const remat_trainer *trainer)
{
    const remat_executor *executor = trainer->executor;
    for (size_t position = 0; position < executor->count; position++)
        if (executor->steps[position].kind == GRAPH_APPLY)
            return trainer->live_bytes[position];
    return 0;
}

void trainer_note_all(const remat_trainer *trainer, const char *phase, uint64_t began, uint64_t flops, uint64_t bytes)
{
    if (!trainer->on_action)
        return;
    const remat_action seen = {.layer = "(all gradients)",
                               .what = phase,
                               .position = trainer->network->layer_count,
                               .began = began,
                               .ended = trainer_clock(trainer),
                               .live_bytes = live_at_end(trainer)};
    report(trainer, seen, (layer_work){.flops = flops, .bytes = bytes});
}
