#include "net_graph.h"

#include <stdlib.h>

#include "measure.h"

void net_begin(remat_context *context, net *n)
{
    *n = (net){.context = context, .statistics = REMAT_NO_TENSOR};
    measure_must(context, remat_graph_create(context, &n->graph));
}

static uint32_t add_any(net *n, uint64_t bytes, bool given)
{
    remat_graph_tensor tensor;
    remat_graph_tensor_init(&tensor);
    tensor.bytes = bytes;
    tensor.given = given;
    measure_must(n->context, remat_graph_add_tensor(n->graph, &tensor));
    return (uint32_t)remat_graph_tensor_count(n->graph) - 1;
}

static uint32_t add_tensor(net *n, uint64_t bytes)
{
    return add_any(n, bytes, false);
}

void net_give(net *n, uint64_t bytes)
{
    add_any(n, bytes, true);
}

typedef struct parts {
    uint32_t reads[2 * MOST_INPUTS + 2], writes[MOST_INPUTS], updates[MOST_INPUTS];
    size_t read_count, write_count, update_count;
    bool in_place; /* the first write may take the bytes of the first read */
} parts;

static void add_number(uint32_t *list, size_t *count, uint32_t number)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == number)
            return;
    list[(*count)++] = number;
}

static void add_action(net *n, const parts *p, uint64_t cost, bool once)
{
    remat_graph_action action;
    remat_graph_action_init(&action);
    action.reads = p->reads;
    action.read_count = p->read_count;
    action.writes = p->writes;
    action.write_count = p->write_count;
    action.updates = p->updates;
    action.update_count = p->update_count;
    action.cost = cost;
    action.once = once;
    if (p->in_place) {
        action.in_place_from = p->reads[0];
        action.in_place_to = p->writes[0];
    }
    measure_must(n->context, remat_graph_add_action(n->graph, &action));
}

static uint64_t extra_bytes(uint64_t bytes, int needs)
{
    return needs & NEEDS_MASK ? bytes / 32 : needs & NEEDS_SMALL_PLACES ? bytes / 4 : 2 * bytes;
}

void net_add_statistics(net *n, uint32_t layer, uint64_t bytes, uint64_t cost)
{
    parts p = {.reads = {n->layers[layer].output}, .read_count = 1, .write_count = 1};
    p.writes[0] = n->statistics = add_tensor(n, bytes);
    add_action(n, &p, cost, false);
}

uint32_t net_layer_add(net *n, const uint32_t *inputs, size_t count, uint64_t bytes, uint64_t cost, int needs,
                       uint64_t weight_bytes)
{
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? 2 * n->capacity : 64;
        n->layers = realloc(n->layers, n->capacity * sizeof *n->layers);
        if (!n->layers || count > MOST_INPUTS)
            exit(1);
    }
    net_layer *layer = &n->layers[n->count];
    *layer = (net_layer){.input_count = count,
                         .bytes = bytes,
                         .cost = cost,
                         .backward_cost = cost,
                         .needs = needs,
                         .weight_bytes = weight_bytes,
                         .gradient = REMAT_NO_TENSOR,
                         .extra = REMAT_NO_TENSOR,
                         .statistics = n->statistics};
    layer->output = add_tensor(n, bytes);
    parts p = {.writes = {layer->output}, .write_count = 1, .in_place = needs & IN_PLACE};
    if (needs & (NEEDS_PLACES | NEEDS_SMALL_PLACES | NEEDS_MASK))
        p.writes[p.write_count++] = layer->extra = add_tensor(n, extra_bytes(bytes, needs));
    for (size_t i = 0; i < count; i++) {
        layer->inputs[i] = inputs[i];
        add_number(p.reads, &p.read_count, n->layers[inputs[i]].output);
    }
    if (n->statistics != REMAT_NO_TENSOR)
        add_number(p.reads, &p.read_count, n->statistics);
    n->statistics = REMAT_NO_TENSOR;
    add_action(n, &p, cost, count == 0);
    return (uint32_t)n->count++;
}

void net_cost_backward(net *n, uint64_t cost)
{
    n->layers[n->count - 1].backward_cost = cost;
}

uint32_t net_data(net *n, uint64_t bytes)
{
    return net_layer_add(n, NULL, 0, bytes, 1, 0, 0);
}

uint32_t net_one(net *n, uint32_t input, uint64_t bytes, uint64_t cost, int needs, uint64_t weight_bytes)
{
    return net_layer_add(n, &input, 1, bytes, cost, needs, weight_bytes);
}

uint32_t net_two(net *n, uint32_t a, uint32_t b, uint64_t bytes, uint64_t cost, int needs)
{
    const uint32_t inputs[] = {a, b};
    return net_layer_add(n, inputs, 2, bytes, cost, needs, 0);
}

static void read_needs(const net *n, const net_layer *layer, bool for_weights, parts *p)
{
    const bool reads_inputs = layer->needs & (NEEDS_INPUTS | (for_weights ? NEEDS_FOR_WEIGHTS : 0));
    add_number(p->reads, &p->read_count, layer->gradient);
    for (size_t i = 0; reads_inputs && i < layer->input_count; i++)
        add_number(p->reads, &p->read_count, n->layers[layer->inputs[i]].output);
    if (layer->needs & NEEDS_OUTPUT)
        add_number(p->reads, &p->read_count, layer->output);
    if (layer->extra != REMAT_NO_TENSOR)
        add_number(p->reads, &p->read_count, layer->extra);
    if (layer->statistics != REMAT_NO_TENSOR)
        add_number(p->reads, &p->read_count, layer->statistics);
}

static void add_backward(net *n, net_layer *layer)
{
    if (layer->weight_bytes) {
        parts weights = {0}, apply = {0};
        read_needs(n, layer, true, &weights);
        weights.writes[weights.write_count++] = apply.reads[apply.read_count++] = add_tensor(n, layer->weight_bytes);
        add_action(n, &weights, layer->backward_cost, true);
        add_action(n, &apply, 1, true);
    }
    parts p = {0};
    read_needs(n, layer, false, &p);
    for (size_t i = 0; i < layer->input_count; i++) {
        net_layer *input = &n->layers[layer->inputs[i]];
        if (input->input_count == 0)
            continue;
        bool is_first = input->gradient == REMAT_NO_TENSOR;
        if (is_first)
            input->gradient = add_tensor(n, input->bytes);
        bool is_written = false;
        for (size_t k = 0; k < p.write_count; k++)
            is_written |= p.writes[k] == input->gradient;
        if (is_first)
            p.writes[p.write_count++] = input->gradient;
        else if (!is_written)
            add_number(p.updates, &p.update_count, input->gradient);
    }
    p.in_place = layer->needs & IN_PLACE && p.write_count;
    if (p.write_count + p.update_count)
        add_action(n, &p, layer->backward_cost, true);
}

/* A loss on each of the given layers, then everything backward. */
remat_graph *net_finish(net *n, const uint32_t *losses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        net_layer *layer = &n->layers[losses[i]];
        parts p = {.reads = {layer->output}, .read_count = 1, .write_count = 1};
        p.writes[0] = layer->gradient = add_tensor(n, layer->bytes);
        add_action(n, &p, layer->cost / 10 + 1, true);
    }
    for (size_t i = n->count; i-- > 0;)
        if (n->layers[i].input_count && n->layers[i].gradient != REMAT_NO_TENSOR)
            add_backward(n, &n->layers[i]);
    free(n->layers);
    return n->graph;
}

remat_graph *net_finish_last(net *n)
{
    uint32_t last = (uint32_t)n->count - 1;
    return net_finish(n, &last, 1);
}
