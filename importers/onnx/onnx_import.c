#include "onnx_import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx_object.h"

/* ---- messages ---- */

const char *onnx_node_name(const onnx_node *node)
{
    const Onnx__Node *proto = node->proto;
    if (proto->name && proto->name[0])
        return proto->name;
    for (size_t i = 0; i < proto->n_output; i++)
        if (proto->output[i][0])
            return proto->output[i];
    return proto->op_type && proto->op_type[0] ? proto->op_type : "a node without a name";
}

bool onnx_fail(importer *im, remat_status status, const onnx_node *node, const char *format, ...)
{
    char text[ONNX_MESSAGE];
    va_list arguments;
    if (im->status != REMAT_OK)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    im->status = status;
    if (node)
        snprintf(im->message, ONNX_MESSAGE, "%.100s: node '%.100s' (%.60s): %.200s", im->name, onnx_node_name(node),
                 node->proto->op_type ? node->proto->op_type : "no operator", text);
    else
        snprintf(im->message, ONNX_MESSAGE, "%.100s: %.400s", im->name, text);
    return false;
}

void onnx_warn(importer *im, const char *format, ...)
{
    char text[ONNX_MESSAGE], whole[ONNX_MESSAGE];
    va_list arguments;
    if (!im->options->warn)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%.100s: %.400s", im->name, text);
    im->options->warn(im->options->user, whole);
}

/* ---- types and shapes of everything ---- */

static bool outputs_are_new(importer *im, const onnx_node *node)
{
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && node->outputs[i]->is_defined)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "'%.100s' is written a second time", node->outputs[i]->name);
        if (node->outputs[i])
            node->outputs[i]->is_defined = true; /* also against two outputs of the same name */
    }
    return true;
}

static void find_gradients(const importer *im, onnx_node *node)
{
    if (im->has_backward)
        return;
    for (size_t i = 0; i < node->input_count; i++)
        node->wants_gradient |= node->inputs[i] && node->inputs[i]->wants_gradient;
    if (node->rule && (node->rule->traits & HAS_NO_GRADIENT))
        node->wants_gradient = false;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i])
            node->outputs[i]->wants_gradient = node->wants_gradient && onnx_type_is_float(node->outputs[i]->type);
}

/* Whether the file states the same shape; where it states none, it does. */
static bool agrees(importer *im, const onnx_value *value)
{
    onnx_value stated = {.name = value->name};
    if (!value->stated || !onnx_shape_stated(im, value->stated, false, &stated))
        return true;
    return stated.type == value->type && stated.shape.rank == value->shape.rank &&
           memcmp(stated.shape.sizes, value->shape.sizes, stated.shape.rank * sizeof *stated.shape.sizes) == 0;
}

/* By the rule of the operator. Where that needs numbers that only a run of the model would make, as the file states it. */
static bool find_shapes(importer *im, onnx_node *node)
{
    if (!node->rule)
        return shape_stated(im, node);
    im->lacks_numbers = false;
    if (!node->rule->shape(im, node)) {
        if (!im->lacks_numbers || !node->outputs[0] || !node->outputs[0]->stated)
            return false;
        char message[ONNX_MESSAGE];
        memcpy(message, im->message, sizeof message);
        im->status = REMAT_OK;
        im->message[0] = '\0';
        const bool is_view = node->rule->traits & IS_VIEW;
        if (!shape_stated(im, node) ||
            (is_view && onnx_value_elements(node->inputs[0]) != onnx_value_elements(node->outputs[0]))) {
            im->status = REMAT_BAD_INPUT;
            memcpy(im->message, message, sizeof message);
            return false;
        }
    }
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && !agrees(im, node->outputs[i]))
            onnx_warn(im, "node '%.100s': the file states another shape or type for '%.100s' than its operator makes",
                      onnx_node_name(node), node->outputs[i]->name);
    return im->status == REMAT_OK;
}

/* A subgraph may read any tensor outside of it, and how often it runs is not known before: no schedule could be planned. */
static bool has_no_subgraph(importer *im, const onnx_node *node)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->has_g || node->proto->attribute[i]->n_graphs)
            return onnx_fail(im, REMAT_BAD_INPUT, node,
                             "it has a subgraph, and only models without control flow can be planned; export the model "
                             "with fixed branches and unrolled loops, or remove them with a simplifier");
    return true;
}

static bool define_node(importer *im, onnx_node *node)
{
    if (!has_no_subgraph(im, node))
        return false;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !node->inputs[i]->is_defined)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "it reads '%.100s', which nothing before it writes",
                             node->inputs[i]->name);
    if (!node->proto->op_type || node->output_count == 0)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it has no %s", node->proto->op_type ? "outputs" : "operator");
    if (!outputs_are_new(im, node))
        return false;
    if (!node->rule && !im->has_backward)
        onnx_warn(im,
                  "node '%.100s': the operator %.60s is unknown; its backward is taken to need all inputs and outputs",
                  onnx_node_name(node), node->proto->op_type);
    if (!find_shapes(im, node) || !onnx_fold(im, node))
        return false;
    find_gradients(im, node);
    return node->is_folded || onnx_node_cost(im, node);
}

/* Operators that training frameworks write: gradients by their names, and the optimizers of the training domain. */
static bool is_of_training(const Onnx__Node *proto)
{
    static const char grad[] = "Grad";
    const size_t length = proto->op_type ? strlen(proto->op_type) : 0;
    if (proto->domain && strcmp(proto->domain, "ai.onnx.preview.training") == 0)
        return true;
    return length > strlen(grad) && strcmp(proto->op_type + length - strlen(grad), grad) == 0;
}

static bool import(importer *im)
{
    if (!onnx_values_collect(im))
        return false;
    for (size_t i = 0; i < im->node_count; i++)
        im->has_backward |= is_of_training(im->nodes[i].proto);
    for (size_t i = 0; i < im->node_count; i++)
        if (!define_node(im, &im->nodes[i]))
            return false;
    return onnx_build_graph(im);
}

remat_status onnx_import(remat_context *context, const void *bytes, size_t count, const char *name,
                         const onnx_options *options, remat_graph **graph, char message[ONNX_MESSAGE])
{
    static const onnx_options defaults = {0};
    importer im = {.context = context, .name = name, .options = options ? options : &defaults, .message = message};
    message[0] = '\0';
    *graph = NULL;
    Onnx__Model *model = onnx__model__unpack(NULL, count, bytes);
    im.proto = model ? model->graph : NULL;
    if (!model)
        onnx_fail(&im, REMAT_BAD_INPUT, NULL, "this is no ONNX file, or it is damaged");
    else if (!im.proto)
        onnx_fail(&im, REMAT_BAD_INPUT, NULL, "the file has no graph");
    else if (import(&im))
        *graph = im.graph;
    for (size_t i = 0; i < im.value_count; i++)
        free(im.values[i].known);
    free(im.values);
    free(im.links);
    free(im.nodes);
    if (!*graph)
        remat_graph_destroy(im.graph);
    if (model)
        onnx__model__free_unpacked(model, NULL);
    return im.status;
}
