#include "model/program.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "model/program_builder.h"

void program_destroy(remat_program *program)
{
    if (!program)
        return;
    remat_context *context = program->context;
    graph_destroy(program->graph);
    remat_release(context, program->actions, program->action_capacity, sizeof *program->actions);
    remat_release(context, program->bound, program->bound_capacity, sizeof *program->bound);
    remat_release(context, program->transfers, program->transfer_capacity, sizeof *program->transfers);
    remat_release(context, program->hints, program->hint_capacity, sizeof *program->hints);
    remat_release(context, program->outputs, program->network->layer_count, sizeof *program->outputs);
    remat_release(context, program->forwards, program->network->layer_count, sizeof *program->forwards);
    remat_release(context, program->gradients, program->network->parameter_count, sizeof *program->gradients);
    remat_release(context, program->applied, program->network->parameter_count, sizeof *program->applied);
    text_pool_end(&program->names);
    remat_release(context, program, 1, sizeof *program);
}

/* ---- the tensors of an action ---- */

/* A list of an action, in the order of program.bound, and how long it is for a layer. */
typedef struct bound_list {
    uint32_t *items;
    size_t count;
} bound_list;
enum { BOUND_LISTS = 7 };

static void list_bound(const layer_node *node, program_binding *binding, bound_list lists[BOUND_LISTS])
{
    const bound_list all[BOUND_LISTS] = {{&binding->output, 1},
                                         {&binding->d_output, 1},
                                         {binding->inputs, node->input_count},
                                         {binding->saved, node->saved_count},
                                         {binding->d_inputs, node->input_count},
                                         {binding->copied, node->input_count},
                                         {binding->gradients, node->parameter_count}};
    memcpy(lists, all, sizeof all);
}

remat_status builder_add_binding(builder *b, program_binding *binding)
{
    remat_program *program = b->program;
    const layer_node *node = &b->network->layers[binding->layer].node;
    bound_list lists[BOUND_LISTS];
    list_bound(node, binding, lists);
    size_t number = program->graph->action_count,
           most = 2 + 3 * (size_t)node->input_count + LAYER_MAX_SAVED + LAYER_MAX_PARAMETERS;
    REMAT_TRY(remat_grow(b->context, (void **)&program->actions, &program->action_capacity, number + 1,
                         sizeof *program->actions));
    REMAT_TRY(remat_grow(b->context, (void **)&program->bound, &program->bound_capacity, program->bound_count + most,
                         sizeof *program->bound));
    program->actions[number] = (program_action){.layer = binding->layer,
                                                .first = (uint32_t)program->bound_count,
                                                .accumulate_inputs = (uint16_t)binding->accumulate_inputs,
                                                .accumulate_gradients = (uint8_t)binding->accumulate_gradients,
                                                .kind = binding->kind};
    for (size_t i = 0; i < BOUND_LISTS; i++) {
        memcpy(program->bound + program->bound_count, lists[i].items, lists[i].count * sizeof *program->bound);
        program->bound_count += lists[i].count;
    }
    return REMAT_OK;
}

program_binding program_binding_of(const remat_program *program, uint32_t number)
{
    const program_action *action = &program->actions[number];
    program_binding binding;
    bound_list lists[BOUND_LISTS];
    memset(&binding, 0xff, sizeof binding); /* GRAPH_NONE is all ones */
    binding.kind = action->kind;
    binding.layer = action->layer;
    binding.accumulate_inputs = action->accumulate_inputs;
    binding.accumulate_gradients = action->accumulate_gradients;
    const uint32_t *next = program->bound + action->first;
    list_bound(&program->network->layers[action->layer].node, &binding, lists);
    for (size_t i = 0; i < BOUND_LISTS; i++) {
        memcpy(lists[i].items, next, lists[i].count * sizeof *next);
        next += lists[i].count;
    }
    return binding;
}

/* ---- building ---- */

static remat_status build(builder *b)
{
    remat_program *program = b->program;
    REMAT_TRY(graph_create(program->context, &program->graph));
    REMAT_TRY(builder_add_forward(b));
    REMAT_TRY(program->apply == PROGRAM_FORWARD_ONLY ? builder_add_results(b) : builder_add_backward(b));
    size_t actions = program->graph->action_count, hints = program->hints ? actions : 0;
    REMAT_TRY(remat_fit(b->context, (void **)&program->actions, &program->action_capacity, actions,
                        sizeof *program->actions));
    REMAT_TRY(remat_fit(b->context, (void **)&program->transfers, &program->transfer_capacity, program->transfer_count,
                        sizeof *program->transfers));
    REMAT_TRY(remat_fit(b->context, (void **)&program->hints, &program->hint_capacity, hints, sizeof *program->hints));
    REMAT_TRY(remat_fit(b->context, (void **)&program->bound, &program->bound_capacity, program->bound_count,
                        sizeof *program->bound));
    return graph_fit(program->graph);
}

remat_status program_build(const remat_network *network, program_apply apply, remat_program **made)
{
    return program_build_for(network, apply, NULL, NULL, made);
}

remat_status program_build_for(const remat_network *network, program_apply apply, const program_speed *speed,
                               const program_stage *stage, remat_program **made)
{
    *made = NULL;
    remat_context *context = network->context;
    remat_program *program = remat_alloc_zeroed(context, 1, sizeof *program);
    if (!program)
        return REMAT_NO_MEMORY;
    program->context = context;
    program->network = network;
    program->speed = speed ? *speed : program_default_speed;
    program->apply = apply;
    text_pool_begin(&program->names, context);
    program->labels = program->turn = GRAPH_NONE;
    program->outputs = remat_alloc(context, network->layer_count, sizeof *program->outputs);
    program->forwards = remat_alloc(context, network->layer_count, sizeof *program->forwards);
    program->gradients = remat_alloc(context, network->parameter_count, sizeof *program->gradients);
    program->applied = remat_alloc(context, network->parameter_count, sizeof *program->applied);
    builder b = {.program = program, .context = context, .network = network, .end = (uint32_t)network->layer_count};
    remat_status status = REMAT_NO_MEMORY;
    if (program->outputs && program->forwards && program->gradients && program->applied) {
        for (size_t n = 0; n < network->layer_count; n++)
            program->forwards[n] = program->outputs[n] = GRAPH_NONE;
        for (size_t p = 0; p < network->parameter_count; p++)
            program->gradients[p] = program->applied[p] = GRAPH_NONE;
        status = stage ? builder_find_stage(&b, stage) : REMAT_OK;
        if (status == REMAT_OK)
            status = build(&b);
    }
    builder_release(&b);
    if (status != REMAT_OK) {
        program_destroy(program);
        return status;
    }
    *made = program;
    return REMAT_OK;
}

remat_status program_find_blocks(const remat_program *program, uint32_t **blocks)
{
    size_t count = program->graph->action_count;
    *blocks = remat_alloc(program->context, count, sizeof **blocks);
    if (!*blocks)
        return REMAT_NO_MEMORY;
    for (size_t a = 0; a < count; a++) {
        uint32_t block = program->network->layers[program->actions[a].layer].block;
        (*blocks)[a] = block == NETWORK_NONE ? GRAPH_NONE : block;
    }
    return REMAT_OK;
}

/* How long the action may take, in nanoseconds, where nothing was measured: matrix work at a modest rate, every byte
 * touched once at the memory's, and the cost of starting threads. Only ratios matter to a plan. */
const program_speed program_default_speed = {150, 15};

uint64_t program_modelled_cost(const program_speed *speed, uint64_t flops, uint64_t bytes)
{
    const program_speed *plain = &program_default_speed;
    if (speed->flops == plain->flops && speed->bytes == plain->bytes)
        return flops / 150 + bytes / 15 + 2000; /* whole numbers, the same everywhere */
    const double cost = (double)flops / speed->flops + (double)bytes / speed->bytes + 2000;
    return cost < (double)(REMAT_LIMIT / 2) ? (uint64_t)cost : REMAT_LIMIT / 2;
}

/* Scales the actions of one kind of a layer so that they sum to the measured cost, in proportion to the model's. */
static void spread(remat_program *program, uint32_t layer, bool forward, uint64_t measured)
{
    remat_graph *graph = program->graph;
    uint64_t modelled = 0, given = 0;
    graph_action *last = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (size_t a = 0; a < graph->action_count; a++) {
            graph_action *action = &graph->actions[a];
            const program_action *binding = &program->actions[a];
            if (binding->layer != layer || binding->kind == ACTION_LOAD || binding->kind >= ACTION_RECEIVE ||
                (binding->kind == ACTION_FORWARD) != forward)
                continue;
            if (pass == 0) {
                modelled += action->cost;
                last = action;
            } else if (action == last) {
                action->cost = measured - given;
            } else {
                action->cost = modelled ? (uint64_t)((unsigned __int128)measured * action->cost / modelled) : 0;
                given += action->cost;
            }
        }
}

/* Layers by name would be a table of their own; profiles come in the order of the layers, so the search begins behind the
 * last one found. */
static size_t find_layer(const remat_network *network, const char *name, size_t from)
{
    for (size_t i = 0; i < network->layer_count; i++) {
        size_t n = (from + i) % network->layer_count;
        if (strcmp(network->layers[n].node.name, name) == 0)
            return n;
    }
    return network->layer_count;
}

/* The output of a network's layer with `batch` samples as a profile states it; 0 where it has none. */
static uint64_t output_bytes(const remat_program *program, size_t n, uint64_t batch)
{
    uint32_t output = program->outputs[n];
    uint64_t bytes = output == GRAPH_NONE ? 0 : program->graph->tensors[output].bytes;
    return graph_placed_bytes((uint64_t)((unsigned __int128)bytes * batch / program->network->batch));
}

/* The next layer of a profile from *i on that the network has, as its number there; the number of layers where none is left.
 * `last` is the one before. */
static size_t next_measured(const remat_network *network, const remat_profile *profile, size_t *i, size_t last)
{
    for (; *i < remat_profile_layer_count(profile); ++*i) {
        size_t n = find_layer(network, remat_profile_layer(profile, *i)->name, last + 1);
        if (n < network->layer_count)
            return n;
    }
    return network->layer_count;
}

/* The first layer of the profile whose output is not that of `batch` samples; the number of layers where there is none. */
static size_t first_other_size(const remat_program *program, const remat_profile *profile, uint64_t batch)
{
    const remat_network *network = program->network;
    size_t last = network->layer_count - 1, i = 0;
    for (size_t n; (n = next_measured(network, profile, &i, last)) < network->layer_count; last = n, i++)
        if (program->outputs[n] != GRAPH_NONE &&
            remat_profile_layer(profile, i)->output_bytes != output_bytes(program, n, batch))
            break;
    return i;
}

/* The batch with which the profile was measured, if it is one of this model; otherwise the model's. The largest output
 * tells: there, rounding to whole lines matters least. */
static uint64_t measured_batch(const remat_program *program, const remat_profile *profile)
{
    const remat_network *network = program->network;
    uint64_t largest = 0, batch = network->batch;
    size_t last = network->layer_count - 1, i = 0;
    for (size_t n; (n = next_measured(network, profile, &i, last)) < network->layer_count; last = n, i++) {
        uint64_t bytes = program->outputs[n] == GRAPH_NONE ? 0 : program->graph->tensors[program->outputs[n]].bytes;
        if (bytes <= largest)
            continue;
        largest = bytes;
        batch = (uint64_t)((unsigned __int128)remat_profile_layer(profile, i)->output_bytes * network->batch / bytes);
    }
    bool fits = batch && first_other_size(program, profile, batch) == remat_profile_layer_count(profile);
    return fits ? batch : network->batch;
}

static uint64_t scale(uint64_t cost, uint64_t batch, uint64_t measured)
{
    unsigned __int128 scaled = (unsigned __int128)cost * batch / measured;
    return scaled < REMAT_LIMIT ? (uint64_t)scaled : REMAT_LIMIT - 1;
}

remat_status program_set_costs(remat_program *program, const remat_profile *profile)
{
    const char *unit = remat_profile_cost_unit(profile);
    if (strcmp(unit, "ns") != 0)
        return remat_fail(
            program->context, REMAT_BAD_INPUT, NULL,
            "the profile's costs are in '%s', not in ns; `remat profile` of this model writes one that is", unit);
    const remat_network *network = program->network;
    const uint64_t batch = network->batch, from = measured_batch(program, profile);
    size_t last = network->layer_count - 1, found = 0, i = first_other_size(program, profile, from);
    if (i < remat_profile_layer_count(profile)) {
        const remat_layer *measured = remat_profile_layer(profile, i);
        size_t n = find_layer(network, measured->name, 0);
        return remat_fail(program->context, REMAT_BAD_INPUT, NULL,
                          "the profile's layer '%s' has an output of %llu bytes, the model's has %llu: it was measured "
                          "with another model; `remat profile` of this one writes one that fits",
                          measured->name, (unsigned long long)measured->output_bytes,
                          (unsigned long long)output_bytes(program, n, batch));
    }
    i = 0;
    for (size_t n; (n = next_measured(network, profile, &i, last)) < network->layer_count; last = n, i++, found++) {
        const remat_layer *measured = remat_profile_layer(profile, i);
        spread(program, (uint32_t)n, true, scale(measured->modes[0].forward_cost, batch, from));
        spread(program, (uint32_t)n, false, scale(measured->modes[0].backward_cost, batch, from));
    }
    if (found == 0)
        return remat_fail(
            program->context, REMAT_BAD_INPUT, NULL,
            "the profile names none of the model's layers; `remat profile` of this model writes one that does");
    if (from != batch)
        remat_warn(program->context, NULL,
                   "the profile was measured with batch %llu; its times are scaled to batch %llu",
                   (unsigned long long)from, (unsigned long long)batch);
    return REMAT_OK;
}
