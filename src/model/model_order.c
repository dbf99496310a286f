/* The execution order: when each layer runs forward, is recomputed, computes the gradients of its weights and of its
 * inputs, and when its weights are updated. Numbers are positions in the sequence of a training step with the model's
 * blocks. The live ranges of all tensors follow from this order. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/output.h"
#include "base/utf8.h"
#include "model/model_object.h"
#include "model/model_order.h"
#include "model/program.h"
#include "plan/graph/graph_outline.h"
#include "graph/graph_walk.h"

/* A training step of the model as it is described. */
typedef struct ordered_step {
    remat_program *program;
    graph_sequence sequence;
    graph_liveness liveness;
} ordered_step;

static void release(remat_context *context, ordered_step *step)
{
    graph_liveness_release(context, &step->liveness);
    graph_sequence_release(context, &step->sequence);
    program_destroy(step->program);
}

static remat_status find_sequence(const remat_network *network, ordered_step *step)
{
    program_apply apply = network->has_labels ? PROGRAM_APPLY_AT_ONCE : PROGRAM_FORWARD_ONLY;
    REMAT_TRY(program_build(network, apply, &step->program));
    const remat_graph *graph = step->program->graph;
    graph_outline outline;
    uint32_t *blocks;
    REMAT_TRY(program_find_blocks(step->program, &blocks));
    remat_status status = graph_outline_create(graph, &outline);
    if (status == REMAT_OK)
        status = graph_blocks_sequence(&outline, blocks, &step->sequence);
    graph_outline_release(&outline);
    remat_release(network->context, blocks, graph->action_count, sizeof *blocks);
    REMAT_TRY(status);
    return graph_walk(step->program->graph, &step->sequence, GRAPH_PLACED, &step->liveness);
}

/* One pass over the sequence fills the five numbers of every layer. */
static void find_order(const ordered_step *step, layer_order *order)
{
    const remat_program *program = step->program;
    for (size_t n = 0; n < program->network->layer_count; n++)
        for (size_t i = 0; i < ORDER_COUNT; i++)
            order[n].at[i] = REMAT_NOWHERE;
    for (size_t position = 0; position < step->sequence.count; position++) {
        uint32_t number = step->sequence.actions[position];
        const program_action *binding = &program->actions[number];
        uint64_t *at = order[binding->layer].at, *place = NULL;
        switch (binding->kind) {
        case ACTION_LOAD:
            if (program_binding_of(program, number).output == program->outputs[binding->layer])
                place = &at[ORDER_FORWARD];
            break;
        case ACTION_FORWARD: place = &at[at[ORDER_FORWARD] == REMAT_NOWHERE ? ORDER_FORWARD : ORDER_RECOMPUTE]; break;
        case ACTION_WEIGHT_GRADIENT: place = &at[ORDER_GRADIENT]; break;
        case ACTION_INPUT_GRADIENT: place = &at[ORDER_DERIVATIVE]; break;
        case ACTION_APPLY: place = &at[ORDER_APPLY]; break;
        case ACTION_RECEIVE:
        case ACTION_SEND:
        case ACTION_TURN: break;
        }
        if (place && *place == REMAT_NOWHERE)
            *place = position;
    }
}

remat_status model_find_order(const remat_network *network, layer_order *order)
{
    ordered_step step = {0};
    remat_status status = find_sequence(network, &step);
    if (status == REMAT_OK)
        find_order(&step, order);
    release(network->context, &step);
    return status;
}

/* ---- printing ---- */

static const char *const order_names[ORDER_COUNT] = {"forward", "recompute", "gradient", "derivative", "apply"};

static void put_position(output *out, uint64_t position, bool json)
{
    char text[32];
    if (position == REMAT_NOWHERE)
        snprintf(text, sizeof text, json ? "null" : "%11s", "-");
    else
        snprintf(text, sizeof text, json ? "%" PRIu64 : "%11" PRIu64, position);
    output_text(out, text);
}

/* A name, however long it is, as a terminal may show it; at least `width` columns. */
static void put_name(output *out, const char *name, size_t width)
{
    size_t used = 0;
    while (*name) {
        char shown[UTF8_SHOWN];
        name += utf8_show(name, shown);
        output_text(out, shown);
        used += strlen(shown);
    }
    for (; used < width; used++)
        output_text(out, " ");
}

static void put_layer(output *out, const remat_network *network, size_t n, const layer_order *order, bool json)
{
    char text[80];
    if (json) {
        output_text(out, n ? ",\n  {\"name\": " : "\n  {\"name\": ");
        output_quoted(out, network->layers[n].node.name);
    } else {
        put_name(out, network->layers[n].node.name, 28);
    }
    for (size_t i = 0; i < ORDER_COUNT; i++) {
        if (json) {
            snprintf(text, sizeof text, ", \"%s\": ", order_names[i]);
            output_text(out, text);
        }
        put_position(out, order->at[i], json);
    }
    output_text(out, json ? "}" : "\n");
}

static void put_range(output *out, const live_range *range, const char *name, bool first, bool json)
{
    char text[160];
    if (json) {
        output_text(out, first ? "\n  {\"tensor\": " : ",\n  {\"tensor\": ");
        output_quoted(out, name);
        snprintf(text, sizeof text, ", \"bytes\": %" PRIu64 ", \"born\": %u, \"ends\": %u}", range->bytes, range->born,
                 range->ends);
    } else {
        put_name(out, name, 40);
        snprintf(text, sizeof text, " %12" PRIu64 "  %u..%u\n", range->bytes, range->born, range->ends - 1);
    }
    output_text(out, text);
}

static void put_all(output *out, const remat_network *network, const ordered_step *step, const layer_order *order,
                    bool json)
{
    char text[160];
    if (json) {
        output_text(out, "{\"format\": \"remat-order\", \"version\": 1, \"layers\": [");
    } else {
        snprintf(text, sizeof text, "%-28s%11s%11s%11s%11s%11s\n", "layer", order_names[0], order_names[1],
                 order_names[2], order_names[3], order_names[4]);
        output_text(out, text);
    }
    for (size_t n = 0; n < network->layer_count; n++)
        put_layer(out, network, n, &order[n], json);
    snprintf(text, sizeof text, "\n%-40s %12s  lives during\n", "tensor", "bytes");
    output_text(out, json ? "],\n \"lives\": [" : text);
    bool first = true;
    for (size_t i = 0; i < step->liveness.range_count; i++) {
        const live_range *range = &step->liveness.ranges[i];
        if (range->tensor == GRAPH_NONE)
            continue; /* workspaces live for one step each */
        put_range(out, range, step->program->graph->tensors[range->tensor].name, first, json);
        first = false;
    }
    snprintf(text, sizeof text,
             json ? "],\n \"peak_bytes\": %" PRIu64 ", \"peak_position\": %u}\n"
                  : "\nat most %" PRIu64 " bytes live at once, first at step %u\n",
             step->liveness.peak_bytes, step->liveness.peak_position);
    output_text(out, text);
}

static remat_status write_order(const remat_network *network, const ordered_step *step, FILE *stream, bool json)
{
    remat_context *context = network->context;
    layer_order *order = remat_alloc(context, network->layer_count, sizeof *order);
    output *out = remat_alloc(context, 1, sizeof *out);
    remat_status status = REMAT_NO_MEMORY;
    if (order && out) {
        find_order(step, order);
        output_begin(out, context, stream);
        put_all(out, network, step, order, json);
        status = output_end(out);
    }
    remat_release(context, order, network->layer_count, sizeof *order);
    remat_release(context, out, 1, sizeof *out);
    return status;
}

remat_status remat_model_write_order(const remat_model *model, FILE *stream, bool json)
{
    if (!model->network)
        return remat_fail(model->context, REMAT_INVALID, NULL,
                          "the model is not compiled: remat_model_compile comes first");
    ordered_step step = {0};
    remat_status status = find_sequence(model->network, &step);
    if (status == REMAT_OK)
        status = write_order(model->network, &step, stream, json);
    release(model->context, &step);
    return status;
}
