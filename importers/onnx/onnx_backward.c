/* The graph of a training step: forward actions, a loss, and backward actions by the table of operators. */
#include <stdlib.h>
#include <string.h>

#include "onnx_object.h"

/* A list of tensors of an action. */
typedef struct links {
    uint32_t *items;
    size_t count, capacity;
} links;

typedef struct builder {
    importer *im;
    links reads, writes;
    char *name; /* of the thing that is added next */
    size_t name_capacity;
} builder;

static bool out_of_memory(importer *im)
{
    return onnx_fail(im, REMAT_NO_MEMORY, NULL, "memory ran out");
}

/* What the library says about a failure. */
static bool check(importer *im, remat_status status)
{
    return status == REMAT_OK || onnx_fail(im, status, NULL, "%s", remat_context_message(im->context));
}

/* No tensor is named twice. */
static bool add(importer *im, links *to, uint32_t tensor)
{
    for (size_t i = 0; i < to->count && i < 64; i++)
        if (to->items[i] == tensor)
            return true;
    if (to->count == to->capacity) {
        const size_t wanted = to->capacity ? 2 * to->capacity : 16;
        uint32_t *moved = realloc(to->items, wanted * sizeof *moved);
        if (!moved)
            return out_of_memory(im);
        to->items = moved;
        to->capacity = wanted;
    }
    to->items[to->count++] = tensor;
    return true;
}

static const char *named(builder *b, const char *name, const char *suffix)
{
    const size_t needed = strlen(name) + strlen(suffix) + 1;
    if (needed > b->name_capacity) {
        char *moved = realloc(b->name, 2 * needed);
        if (!moved)
            return NULL;
        b->name = moved;
        b->name_capacity = 2 * needed;
    }
    strcpy(b->name, name); /* there is room for both */
    return strcat(b->name, suffix);
}

/* ---- tensors ---- */

static bool add_tensor(builder *b, const char *name, const char *suffix, uint64_t bytes, bool given, uint32_t *number)
{
    importer *im = b->im;
    remat_graph_tensor tensor;
    remat_graph_tensor_init(&tensor);
    tensor.name = named(b, name, suffix);
    tensor.bytes = bytes;
    tensor.given = given;
    if (!tensor.name)
        return out_of_memory(im);
    *number = im->tensor_count++;
    return check(im, remat_graph_add_tensor(im->graph, &tensor));
}

/* The tensor of a value. What no action writes is there from the start: weights, inputs, constants. */
static bool tensor_of(builder *b, onnx_value *value, uint32_t *tensor)
{
    uint64_t bytes;
    if (value->tensor == NO_TENSOR) {
        if (!onnx_value_bytes(b->im, value, &bytes) || !add_tensor(b, value->name, "", bytes, true, &value->tensor))
            return false;
    }
    *tensor = value->tensor;
    return true;
}

/* ---- actions ---- */

static void begin(builder *b)
{
    b->reads.count = b->writes.count = 0;
}

static bool reads(builder *b, onnx_value *value)
{
    uint32_t tensor;
    return tensor_of(b, value, &tensor) && add(b->im, &b->reads, tensor);
}

static bool end(builder *b, const char *name, const char *suffix, bool once, uint64_t cost, uint32_t from, uint32_t to)
{
    remat_graph_action action;
    remat_graph_action_init(&action);
    action.name = named(b, name, suffix);
    action.reads = b->reads.items;
    action.read_count = b->reads.count;
    action.writes = b->writes.items;
    action.write_count = b->writes.count;
    action.once = once;
    action.cost = cost;
    if (from != NO_TENSOR && to != NO_TENSOR && from != to) {
        action.in_place_from = from;
        action.in_place_to = to;
    }
    return action.name ? check(b->im, remat_graph_add_action(b->im->graph, &action)) : out_of_memory(b->im);
}

/* ---- forward ---- */

static bool is_view(const onnx_node *node)
{
    return node->rule && (node->rule->traits & IS_VIEW) && node->inputs[0] && node->output_count && node->outputs[0];
}

static bool add_forward(builder *b, onnx_node *node)
{
    uint64_t bytes;
    if (is_view(node))
        return tensor_of(b, node->inputs[0], &node->outputs[0]->tensor);
    begin(b);
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !reads(b, node->inputs[i]))
            return false;
    for (size_t i = 0; i < node->output_count; i++) {
        onnx_value *value = node->outputs[i];
        if (!value)
            continue;
        if (!onnx_value_bytes(b->im, value, &bytes) || !add_tensor(b, value->name, "", bytes, false, &value->tensor) ||
            !add(b->im, &b->writes, value->tensor))
            return false;
    }
    bytes = node->wants_gradient ? onnx_node_saved_bytes(node) : 0;
    if (bytes && (!add_tensor(b, onnx_node_name(node), ".saved", bytes, false, &node->saved) ||
                  !add(b->im, &b->writes, node->saved)))
        return false;
    const bool in_place = node->rule && (node->rule->traits & IS_ELEMENTWISE) && node->inputs[0] && node->outputs[0];
    return end(b, onnx_node_name(node), "", false, node->cost, in_place ? node->inputs[0]->tensor : NO_TENSOR,
               in_place ? node->outputs[0]->tensor : NO_TENSOR);
}

/* ---- gradients ---- */

/* Adds what came to what is there already. The sum may take the bytes of either, so it takes those of the first. */
static bool add_gradient(builder *b, onnx_value *value, uint32_t gradient)
{
    uint64_t bytes;
    uint32_t sum;
    if (value->gradients == NO_TENSOR) {
        value->gradients = gradient;
        return true;
    }
    begin(b);
    if (!onnx_value_bytes(b->im, value, &bytes) || !add_tensor(b, value->name, ".gradient_sum", bytes, false, &sum) ||
        !add(b->im, &b->reads, value->gradients) || !add(b->im, &b->reads, gradient) || !add(b->im, &b->writes, sum))
        return false;
    const uint32_t before = value->gradients;
    value->gradients = sum;
    return end(b, value->name, ".gradient_sum", true, onnx_value_elements(value), before, sum);
}

static bool has_gradient(const onnx_node *node, size_t i)
{
    const onnx_value *value = node->inputs[i];
    if (!value || !value->wants_gradient || !onnx_type_is_float(value->type))
        return false;
    return !node->rule || (i < 32 ? node->rule->gradient_inputs >> i & 1 : node->rule->gradient_inputs == ~0u);
}

static bool same_shape(const onnx_value *a, const onnx_value *b)
{
    return a->type == b->type && a->shape.rank == b->shape.rank &&
           memcmp(a->shape.sizes, b->shape.sizes, a->shape.rank * sizeof *a->shape.sizes) == 0;
}

/* Whether the gradient of this input is that of the output, so that nothing has to be computed. */
static bool passes(const onnx_node *node, size_t i)
{
    return is_view(node) ||
           (node->rule && (node->rule->traits & PASSES_GRADIENT) && same_shape(node->inputs[i], node->outputs[0]));
}

/* What the backward of the node reads besides the gradients of its outputs. */
static bool read_needs(builder *b, onnx_node *node)
{
    const unsigned needs = node->rule ? node->rule->needs : NEEDS_INPUTS | NEEDS_OUTPUT;
    for (size_t i = 0; i < node->input_count; i++) {
        if (!node->inputs[i])
            continue;
        bool needed = needs & NEEDS_INPUTS;
        if ((needs & NEEDS_OTHER) && i < 2)
            needed = 1 - i < node->input_count && has_gradient(node, 1 - i);
        if (node->rule && i == 1 && strncmp(node->rule->name, "Gather", 6) == 0)
            needed = true; /* the indices */
        if (node->rule && i == 0 && strcmp(node->rule->name, "Where") == 0)
            needed = true; /* the condition */
        if (needed && !reads(b, node->inputs[i]))
            return false;
    }
    for (size_t i = 0; (needs & NEEDS_OUTPUT) && i < node->output_count; i++)
        if (node->outputs[i] && !reads(b, node->outputs[i]))
            return false;
    return node->saved == NO_TENSOR || add(b->im, &b->reads, node->saved);
}

/* A product costs as much again for each factor with a gradient; all else as much as forward. */
static uint64_t backward_cost(const onnx_node *node)
{
    uint64_t factors = 0;
    for (size_t i = 0; i < node->input_count && i < 2; i++)
        factors += has_gradient(node, i);
    const bool product = node->rule && (node->rule->cost == COST_PRODUCT || node->rule->cost == COST_RECURRENT);
    return product ? node->cost * (factors ? factors : 1) : node->cost;
}

/* One action makes the gradients of all inputs that need one computed. */
static bool add_backward(builder *b, onnx_node *node, uint32_t *made)
{
    uint32_t first = NO_TENSOR, gradient = NO_TENSOR;
    begin(b);
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && node->outputs[i]->gradients != NO_TENSOR) {
            gradient = gradient == NO_TENSOR ? node->outputs[i]->gradients : gradient;
            if (!add(b->im, &b->reads, node->outputs[i]->gradients))
                return false;
        }
    if (!read_needs(b, node))
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        uint64_t bytes;
        made[i] = NO_TENSOR;
        if (!has_gradient(node, i) || passes(node, i))
            continue;
        if (!onnx_value_bytes(b->im, node->inputs[i], &bytes) ||
            !add_tensor(b, node->inputs[i]->name, ".gradient", bytes, false, &made[i]) ||
            !add(b->im, &b->writes, made[i]))
            return false;
        first = first == NO_TENSOR && i == 0 ? made[i] : first;
    }
    if (b->writes.count == 0)
        return true;
    const bool in_place = node->rule && (node->rule->traits & IS_ELEMENTWISE);
    return end(b, onnx_node_name(node), ".backward", true, backward_cost(node), in_place ? gradient : NO_TENSOR,
               in_place ? first : NO_TENSOR);
}

static bool spread_gradients(builder *b, onnx_node *node, const uint32_t *made)
{
    for (size_t i = 0; i < node->input_count; i++) {
        if (!has_gradient(node, i))
            continue;
        const uint32_t gradient = passes(node, i) ? node->outputs[0]->gradients : made[i];
        if (gradient != NO_TENSOR && !add_gradient(b, node->inputs[i], gradient))
            return false;
    }
    return true;
}

static bool go_back(builder *b, onnx_node *node)
{
    bool wanted = false;
    for (size_t i = 0; i < node->output_count; i++)
        wanted |= node->outputs[i] && node->outputs[i]->gradients != NO_TENSOR;
    if (!wanted || node->is_folded || !node->wants_gradient)
        return true;
    uint32_t *made = calloc(node->input_count + 1, sizeof *made);
    const bool fine = made ? add_backward(b, node, made) && spread_gradients(b, node, made) : out_of_memory(b->im);
    free(made);
    return fine;
}

/* ---- the whole ---- */

/* The gradients of the outputs come from a loss that reads them. */
static bool add_loss(builder *b, bool *has_loss)
{
    importer *im = b->im;
    uint64_t cost = 0, bytes;
    begin(b);
    for (size_t i = 0; i < im->proto->n_output; i++) {
        onnx_value *value = im->proto->output[i]->name ? onnx_value_find(im, im->proto->output[i]->name) : NULL;
        if (!value || !value->wants_gradient || !onnx_type_is_float(value->type) || value->gradients != NO_TENSOR)
            continue;
        if (!onnx_value_bytes(im, value, &bytes) || !reads(b, value) ||
            !add_tensor(b, value->name, ".gradient", bytes, false, &value->gradients) ||
            !add(im, &b->writes, value->gradients))
            return false;
        cost += onnx_value_elements(value);
    }
    *has_loss = b->writes.count > 0;
    return !*has_loss || end(b, "loss", "", true, cost, NO_TENSOR, NO_TENSOR);
}

/* The gradients of the weights; without any, the outputs. */
static bool add_results(builder *b, bool has_loss)
{
    importer *im = b->im;
    for (size_t i = 0; has_loss && i < im->value_count; i++)
        if (im->values[i].is_trained && im->values[i].gradients != NO_TENSOR &&
            !check(im, remat_graph_add_result(im->graph, im->values[i].gradients)))
            return false;
    for (size_t i = 0; !has_loss && i < im->proto->n_output; i++) {
        const onnx_value *value = im->proto->output[i]->name ? onnx_value_find(im, im->proto->output[i]->name) : NULL;
        remat_graph_tensor tensor;
        if (!value || value->tensor == NO_TENSOR ||
            remat_graph_get_tensor(im->graph, value->tensor, &tensor) != REMAT_OK || tensor.given)
            continue;
        if (!check(im, remat_graph_add_result(im->graph, value->tensor)))
            return false;
    }
    return true;
}

static bool build(builder *b)
{
    importer *im = b->im;
    bool has_loss = false;
    for (size_t i = 0; i < im->node_count; i++)
        if (!im->nodes[i].is_folded && !add_forward(b, &im->nodes[i]))
            return false;
    if (!add_loss(b, &has_loss))
        return false;
    if (!has_loss && !im->has_backward)
        onnx_warn(im, "no output depends on weights that are trained: the graph has the forward pass only");
    for (size_t i = im->node_count; has_loss && i-- > 0;)
        if (!go_back(b, &im->nodes[i]))
            return false;
    return add_results(b, has_loss);
}

bool onnx_build_graph(importer *im)
{
    builder b = {.im = im};
    const bool fine = check(im, remat_graph_create(im->context, &im->graph)) &&
                      check(im, remat_graph_set_name(im->graph, im->proto->name)) &&
                      check(im, remat_graph_set_cost_unit(im->graph, "flop")) && build(&b);
    free(b.reads.items);
    free(b.writes.items);
    free(b.name);
    return fine;
}
