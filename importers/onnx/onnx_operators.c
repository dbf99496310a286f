/* The table of operators: the shape of the output, what the backward pass needs, and what it costs. */
#include <string.h>

#include "onnx_object.h"

#define ALL_INPUTS 0xffu
#define FIRST      1u

/* In order of their names. Costs of functions such as exp are rough. */
static const onnx_operator operators[] = {
    {"Abs", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 1, IS_ELEMENTWISE, FIRST},
    {"Add", shape_broadcast, NEEDS_NOTHING, COST_ELEMENTS, 1, IS_ELEMENTWISE | PASSES_GRADIENT, ALL_INPUTS},
    {"And", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"ArgMax", shape_arg, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"ArgMin", shape_arg, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"AveragePool", shape_pool, NEEDS_NOTHING, COST_WINDOW, 1, 0, FIRST},
    {"BatchNormalization", shape_normalized, NEEDS_INPUTS | NEEDS_SAVED, COST_ELEMENTS, 8, 0, 7},
    {"Cast", shape_cast, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Ceil", shape_same, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Clip", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 2, IS_ELEMENTWISE, FIRST},
    {"Concat", shape_concat, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, ~0u},
    {"Constant", shape_constant, NEEDS_NOTHING, COST_NONE, 0, HAS_NO_GRADIENT, 0},
    {"ConstantOfShape", shape_filled, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Conv", shape_convolution, NEEDS_OTHER, COST_PRODUCT, 0, 0, 7},
    {"ConvTranspose", shape_transposed_convolution, NEEDS_OTHER, COST_PRODUCT, 0, 0, 7},
    {"Cos", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Div", shape_broadcast, NEEDS_INPUTS, COST_ELEMENTS, 4, IS_ELEMENTWISE, ALL_INPUTS},
    {"Dropout", shape_dropout, NEEDS_SAVED, COST_ELEMENTS, 4, IS_ELEMENTWISE, FIRST},
    {"Elu", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Equal", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Erf", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 10, IS_ELEMENTWISE, FIRST},
    {"Exp", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Expand", shape_expand, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Flatten", shape_flatten, NEEDS_NOTHING, COST_NONE, 0, IS_VIEW, FIRST},
    {"Floor", shape_same, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"GRU", shape_recurrent, NEEDS_INPUTS | NEEDS_OUTPUT | NEEDS_SAVED, COST_RECURRENT, 0, 0, 0x2f},
    {"Gather", shape_gather, NEEDS_NOTHING, COST_ELEMENTS, 1, READS_PART, FIRST},
    {"GatherElements", shape_like_indices, NEEDS_NOTHING, COST_ELEMENTS, 1, READS_PART, FIRST},
    {"Gelu", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 12, IS_ELEMENTWISE, FIRST},
    {"Gemm", shape_gemm, NEEDS_OTHER, COST_PRODUCT, 0, 0, 7},
    {"GlobalAveragePool", shape_global_pool, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"GlobalMaxPool", shape_global_pool, NEEDS_INPUTS | NEEDS_OUTPUT, COST_ELEMENTS, 1, 0, FIRST},
    {"Greater", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"GreaterOrEqual", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"GroupNormalization", shape_normalized, NEEDS_INPUTS | NEEDS_SAVED, COST_ELEMENTS, 8, 0, 7},
    {"HardSigmoid", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 3, IS_ELEMENTWISE, FIRST},
    {"HardSwish", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 4, IS_ELEMENTWISE, FIRST},
    {"Identity", shape_same, NEEDS_NOTHING, COST_NONE, 0, IS_VIEW, FIRST},
    {"InstanceNormalization", shape_normalized, NEEDS_INPUTS | NEEDS_SAVED, COST_ELEMENTS, 8, 0, 7},
    {"LSTM", shape_recurrent, NEEDS_INPUTS | NEEDS_OUTPUT | NEEDS_SAVED, COST_RECURRENT, 0, 0, 0x6f},
    {"LayerNormalization", shape_normalized, NEEDS_INPUTS | NEEDS_SAVED, COST_ELEMENTS, 8, 0, 7},
    {"LeakyRelu", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 2, IS_ELEMENTWISE, FIRST},
    {"Less", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"LessOrEqual", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Log", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"LogSoftmax", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 10, IS_ELEMENTWISE, FIRST},
    {"MatMul", shape_matmul, NEEDS_OTHER, COST_PRODUCT, 0, 0, 3},
    {"Max", shape_broadcast, NEEDS_INPUTS, COST_ELEMENTS, 1, IS_ELEMENTWISE, ALL_INPUTS},
    {"MaxPool", shape_pool, NEEDS_INPUTS | NEEDS_OUTPUT, COST_WINDOW, 1, 0, FIRST},
    {"Min", shape_broadcast, NEEDS_INPUTS, COST_ELEMENTS, 1, IS_ELEMENTWISE, ALL_INPUTS},
    {"Mul", shape_broadcast, NEEDS_OTHER, COST_ELEMENTS, 1, IS_ELEMENTWISE, 3},
    {"Neg", shape_same, NEEDS_NOTHING, COST_ELEMENTS, 1, IS_ELEMENTWISE, FIRST},
    {"Not", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Or", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"PRelu", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 2, IS_ELEMENTWISE, 3},
    {"Pad", shape_pad, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Pow", shape_broadcast, NEEDS_INPUTS, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"RMSNormalization", shape_normalized, NEEDS_INPUTS | NEEDS_SAVED, COST_ELEMENTS, 6, 0, 3},
    {"Range", shape_range, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Reciprocal", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 4, IS_ELEMENTWISE, FIRST},
    {"ReduceL2", shape_reduce, NEEDS_INPUTS | NEEDS_OUTPUT, COST_ELEMENTS, 2, 0, FIRST},
    {"ReduceMax", shape_reduce, NEEDS_INPUTS | NEEDS_OUTPUT, COST_ELEMENTS, 1, 0, FIRST},
    {"ReduceMean", shape_reduce, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"ReduceMin", shape_reduce, NEEDS_INPUTS | NEEDS_OUTPUT, COST_ELEMENTS, 1, 0, FIRST},
    {"ReduceProd", shape_reduce, NEEDS_INPUTS | NEEDS_OUTPUT, COST_ELEMENTS, 1, 0, FIRST},
    {"ReduceSum", shape_reduce, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"ReduceSumSquare", shape_reduce, NEEDS_INPUTS, COST_ELEMENTS, 2, 0, FIRST},
    {"Relu", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 1, IS_ELEMENTWISE, FIRST},
    {"Reshape", shape_reshape, NEEDS_NOTHING, COST_NONE, 0, IS_VIEW, FIRST},
    {"Resize", shape_resize, NEEDS_NOTHING, COST_ELEMENTS, 4, 0, FIRST},
    {"Round", shape_same, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Selu", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Shape", shape_of_shape, NEEDS_NOTHING, COST_NONE, 0, HAS_NO_GRADIENT, 0},
    {"Sigmoid", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Sign", shape_same, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
    {"Sin", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Size", shape_of_size, NEEDS_NOTHING, COST_NONE, 0, HAS_NO_GRADIENT, 0},
    {"Slice", shape_slice, NEEDS_NOTHING, COST_ELEMENTS, 1, READS_PART, FIRST},
    {"Softmax", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 10, IS_ELEMENTWISE, FIRST},
    {"SoftmaxCrossEntropyLoss", shape_loss, NEEDS_INPUTS, COST_ELEMENTS, 10, 0, FIRST},
    {"Softplus", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 10, IS_ELEMENTWISE, FIRST},
    {"Split", shape_split, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Sqrt", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 4, IS_ELEMENTWISE, FIRST},
    {"Squeeze", shape_squeeze, NEEDS_NOTHING, COST_NONE, 0, IS_VIEW, FIRST},
    {"Sub", shape_broadcast, NEEDS_NOTHING, COST_ELEMENTS, 1, IS_ELEMENTWISE, ALL_INPUTS},
    {"Sum", shape_broadcast, NEEDS_NOTHING, COST_ELEMENTS, 1, IS_ELEMENTWISE | PASSES_GRADIENT, ~0u},
    {"Swish", shape_same, NEEDS_INPUTS, COST_ELEMENTS, 9, IS_ELEMENTWISE, FIRST},
    {"Tanh", shape_same, NEEDS_OUTPUT, COST_ELEMENTS, 8, IS_ELEMENTWISE, FIRST},
    {"Tile", shape_tile, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Transpose", shape_transpose, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, FIRST},
    {"Unsqueeze", shape_unsqueeze, NEEDS_NOTHING, COST_NONE, 0, IS_VIEW, FIRST},
    {"Upsample", shape_resize, NEEDS_NOTHING, COST_ELEMENTS, 4, 0, FIRST},
    {"Where", shape_where, NEEDS_NOTHING, COST_ELEMENTS, 1, 0, 6},
    {"Xor", shape_compare, NEEDS_NOTHING, COST_ELEMENTS, 1, HAS_NO_GRADIENT, 0},
};

/* Operators of other domains may mean anything. */
const onnx_operator *onnx_operator_find(const Onnx__Node *proto)
{
    const char *domain = proto->domain ? proto->domain : "";
    if (!proto->op_type || (*domain && strcmp(domain, "ai.onnx") != 0))
        return NULL;
    for (size_t low = 0, high = sizeof operators / sizeof operators[0]; low < high;) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(proto->op_type, operators[middle].name);
        if (order == 0)
            return &operators[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- costs ---- */

static bool times(uint64_t *product, int64_t factor)
{
    return factor >= 0 && !__builtin_mul_overflow(*product, (uint64_t)factor, product) && *product < (uint64_t)1 << 56;
}

static uint64_t most_elements(const onnx_node *node)
{
    uint64_t most = 0;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && onnx_value_elements(node->outputs[i]) > most)
            most = onnx_value_elements(node->outputs[i]);
    if (node->rule && (node->rule->traits & READS_PART))
        return most;
    if (node->input_count && node->inputs[0] && onnx_value_elements(node->inputs[0]) > most)
        most = onnx_value_elements(node->inputs[0]);
    return most;
}

/* Multiplications and additions. A convolution makes an element of its output from a window of a group's channels. */
static bool product_cost(const onnx_node *node, uint64_t *cost)
{
    const onnx_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    *cost = 2;
    if (strcmp(node->proto->op_type, "MatMul") == 0)
        return times(cost, (int64_t)onnx_value_elements(node->outputs[0])) && times(cost, a->sizes[a->rank - 1]);
    if (strcmp(node->proto->op_type, "Gemm") == 0)
        return times(cost, (int64_t)onnx_value_elements(node->outputs[0])) &&
               times(cost, a->sizes[onnx_attribute_int(node, "transA", 0) ? 0 : 1]);
    /* The weights of a convolution are [outputs, inputs of a group, window]; transposed they are used for each input. */
    const bool transposed = strcmp(node->proto->op_type, "ConvTranspose") == 0;
    if (!times(cost, (int64_t)onnx_value_elements(transposed ? node->inputs[0] : node->outputs[0])))
        return false;
    for (unsigned i = 1; i < b->rank; i++)
        if (!times(cost, b->sizes[i]))
            return false;
    return true;
}

static bool window_cost(const onnx_node *node, uint64_t *cost)
{
    const Onnx__Attribute *window = onnx_attribute(node, "kernel_shape");
    *cost = onnx_value_elements(node->outputs[0]);
    for (size_t i = 0; window && i < window->n_ints; i++)
        if (!times(cost, window->ints[i]))
            return false;
    return true;
}

/* Both products of a step: with the weights of the input and with those of the state. */
static bool recurrent_cost(const onnx_node *node, uint64_t *cost)
{
    uint64_t weights = onnx_value_elements(node->inputs[1]) + onnx_value_elements(node->inputs[2]);
    const onnx_shape *x = &node->inputs[0]->shape;
    *cost = 2;
    return times(cost, (int64_t)weights) && times(cost, x->sizes[0]) && times(cost, x->sizes[1]);
}

bool onnx_node_cost(importer *im, onnx_node *node)
{
    bool fine = true;
    node->cost = most_elements(node); /* also of unknown operators */
    switch (node->rule ? node->rule->cost : COST_ELEMENTS) {
    case COST_NONE: node->cost = 0; break;
    case COST_ELEMENTS: fine = times(&node->cost, node->rule ? node->rule->flops : 1); break;
    case COST_WINDOW: fine = window_cost(node, &node->cost); break;
    case COST_PRODUCT: fine = product_cost(node, &node->cost); break;
    case COST_RECURRENT: fine = recurrent_cost(node, &node->cost); break;
    }
    return fine || onnx_fail(im, REMAT_BAD_INPUT, node, "its cost is out of range");
}

/* ---- what is saved ---- */

uint64_t onnx_node_saved_bytes(const onnx_node *node)
{
    const onnx_shape *x = node->input_count && node->inputs[0] ? &node->inputs[0]->shape : NULL;
    const uint64_t elements = x ? onnx_value_elements(node->inputs[0]) : 0;
    if (!x || !node->rule || !(node->rule->needs & NEEDS_SAVED))
        return 0;
    const char *name = node->rule->name;
    if (strcmp(name, "Dropout") == 0)
        return elements;                                         /* a mask with a byte for each */
    if (strcmp(name, "LSTM") == 0 || strcmp(name, "GRU") == 0) { /* gates, and the cell state of an LSTM */
        const uint64_t states = node->outputs[0] ? onnx_value_elements(node->outputs[0]) : elements;
        return states * (name[0] == 'L' ? 5 : 4) * onnx_type_bytes(node->inputs[0]->type);
    }
    /* A mean and a deviation in fp32: for each channel, for each row, or for each channel of each sample. */
    uint64_t count = x->rank > 1 ? (uint64_t)x->sizes[1] : 1;
    if (strcmp(name, "LayerNormalization") == 0 || strcmp(name, "RMSNormalization") == 0) {
        int64_t axis = onnx_attribute_int(node, "axis", -1);
        axis = axis < 0 ? axis + x->rank : axis;
        count = 1;
        for (int64_t i = 0; i < axis && i < x->rank; i++)
            count *= (uint64_t)x->sizes[i];
    } else if (strcmp(name, "BatchNormalization") != 0)
        count *= x->rank ? (uint64_t)x->sizes[0] : 1;
    return count * 2 * 4;
}
