/* Whole numbers that depend on shapes only: files are full of nodes that compute them. */
#include <stdlib.h>
#include <string.h>

#include "onnx_object.h"

bool onnx_set_known(importer *im, onnx_value *value, size_t count)
{
    free(value->known);
    value->known = calloc(count + 1, sizeof *value->known);
    value->known_count = count;
    return value->known || onnx_fail(im, REMAT_NO_MEMORY, NULL, "memory ran out");
}

static bool is(const onnx_node *node, const char *name)
{
    return strcmp(node->proto->op_type, name) == 0;
}

/* The outputs have their shapes. Each of these is false only after a failure. */

static bool fold_shape(importer *im, const onnx_node *node)
{
    const onnx_shape *of = &node->inputs[0]->shape;
    onnx_value *to = node->outputs[0];
    int64_t start = onnx_attribute_int(node, "start", 0);
    start = start < 0 ? start + of->rank : start;
    start = start < 0 ? 0 : start; /* as the shape of the output has it */
    if (!onnx_set_known(im, to, (size_t)to->shape.sizes[0]))
        return false;
    for (size_t i = 0; i < to->known_count; i++)
        to->known[i] = of->sizes[(size_t)start + i];
    return true;
}

static bool fold_size(importer *im, const onnx_node *node)
{
    if (!onnx_set_known(im, node->outputs[0], 1))
        return false;
    node->outputs[0]->known[0] = (int64_t)onnx_value_elements(node->inputs[0]);
    return true;
}

static bool fold_copy(importer *im, const onnx_node *node)
{
    const onnx_value *from = node->inputs[0];
    if (!onnx_set_known(im, node->outputs[0], from->known_count))
        return false;
    memcpy(node->outputs[0]->known, from->known, from->known_count * sizeof *from->known);
    return true;
}

static bool fold_concat(importer *im, const onnx_node *node)
{
    onnx_value *to = node->outputs[0];
    if (to->shape.rank != 1)
        return true;
    if (!onnx_set_known(im, to, (size_t)to->shape.sizes[0]))
        return false;
    size_t at = 0;
    for (size_t i = 0; i < node->input_count; i++)
        for (size_t k = 0; k < node->inputs[i]->known_count && at < to->known_count; k++)
            to->known[at++] = node->inputs[i]->known[k];
    return true;
}

static bool fold_gather(importer *im, const onnx_node *node)
{
    const onnx_value *from = node->inputs[0], *indices = node->inputs[1];
    if (from->shape.rank != 1)
        return true;
    if (!onnx_set_known(im, node->outputs[0], indices->known_count))
        return false;
    for (size_t i = 0; i < indices->known_count; i++) {
        int64_t at = indices->known[i] < 0 ? indices->known[i] + from->shape.sizes[0] : indices->known[i];
        if (at < 0 || (size_t)at >= from->known_count)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "index %lld is outside of its input", (long long)at);
        node->outputs[0]->known[i] = from->known[at];
    }
    return true;
}

static bool fold_slice(importer *im, const onnx_node *node)
{
    const onnx_value *from = node->inputs[0];
    onnx_value *to = node->outputs[0];
    if (from->shape.rank != 1 || node->input_count < 3 || !node->inputs[1] || !node->inputs[1]->known)
        return true;
    const onnx_value *steps = node->input_count > 4 ? node->inputs[4] : NULL;
    const int64_t step = steps && steps->known && steps->known_count ? steps->known[0] : 1, size = from->shape.sizes[0];
    int64_t at = node->inputs[1]->known_count ? node->inputs[1]->known[0] : 0;
    at = at < 0 ? at + size : at;
    at = at < 0 ? 0 : at > size - (step < 0) ? size - (step < 0) : at;
    if (!onnx_set_known(im, to, (size_t)to->shape.sizes[0]))
        return false;
    for (size_t i = 0; i < to->known_count; i++, at += step)
        to->known[i] = at >= 0 && at < size ? from->known[at] : 0;
    return true;
}

static bool calculate(const onnx_node *node, int64_t a, int64_t b, int64_t *result)
{
    if (is(node, "Add"))
        return !__builtin_add_overflow(a, b, result);
    if (is(node, "Sub"))
        return !__builtin_sub_overflow(a, b, result);
    if (is(node, "Mul"))
        return !__builtin_mul_overflow(a, b, result);
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *result = a / b;
    return true;
}

/* Of equal length, or one of them a single number. */
static bool fold_arithmetic(importer *im, const onnx_node *node)
{
    const onnx_value *a = node->inputs[0], *b = node->inputs[1];
    onnx_value *to = node->outputs[0];
    const size_t count = a->known_count > b->known_count ? a->known_count : b->known_count;
    if ((a->known_count != count && a->known_count != 1) || (b->known_count != count && b->known_count != 1))
        return true;
    if (!onnx_set_known(im, to, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!calculate(node, a->known[a->known_count == 1 ? 0 : i], b->known[b->known_count == 1 ? 0 : i],
                       &to->known[i]))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its numbers are out of range");
    return true;
}

static bool fold_filled(importer *im, const onnx_node *node)
{
    onnx_value *to = node->outputs[0], filler = {.name = to->name};
    const Onnx__Attribute *given = onnx_attribute(node, "value");
    if (to->type != 6 && to->type != 7)
        return true;
    if (given && given->t && !onnx_tensor_numbers(im, given->t, &filler))
        return false;
    bool fine = onnx_set_known(im, to, (size_t)onnx_value_elements(to));
    for (size_t i = 0; fine && filler.known_count == 1 && i < to->known_count; i++)
        to->known[i] = filler.known[0];
    free(filler.known);
    return fine;
}

static bool fold_range(importer *im, const onnx_node *node)
{
    onnx_value *to = node->outputs[0];
    if (!onnx_set_known(im, to, (size_t)to->shape.sizes[0]))
        return false;
    for (size_t i = 0; i < to->known_count; i++)
        to->known[i] = (int64_t)((uint64_t)node->inputs[0]->known[0] + i * (uint64_t)node->inputs[2]->known[0]);
    return true;
}

static bool fold_constant(importer *im, const onnx_node *node)
{
    const Onnx__Attribute *ints = onnx_attribute(node, "value_ints"), *one = onnx_attribute(node, "value_int");
    onnx_value *to = node->outputs[0];
    if (!ints && !one)
        return true; /* a tensor: its numbers are known already */
    if (!onnx_set_known(im, to, ints ? ints->n_ints : 1))
        return false;
    for (size_t i = 0; i < to->known_count; i++)
        to->known[i] = ints ? ints->ints[i] : one->i;
    return true;
}

static const struct {
    const char *name;
    bool (*fold)(importer *im, const onnx_node *node);
    bool any_input; /* it needs no numbers, only shapes */
} folds[] = {
    {"Shape", fold_shape, true},
    {"Size", fold_size, true},
    {"Constant", fold_constant, true},
    {"Identity", fold_copy, false},
    {"Cast", fold_copy, false},
    {"Squeeze", fold_copy, false},
    {"Unsqueeze", fold_copy, false},
    {"Reshape", fold_copy, false},
    {"Flatten", fold_copy, false},
    {"Concat", fold_concat, false},
    {"Gather", fold_gather, false},
    {"Slice", fold_slice, false},
    {"Add", fold_arithmetic, false},
    {"Sub", fold_arithmetic, false},
    {"Mul", fold_arithmetic, false},
    {"Div", fold_arithmetic, false},
    {"ConstantOfShape", fold_filled, true},
    {"Range", fold_range, false},
};

static bool inputs_are_known(const onnx_node *node)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !node->inputs[i]->known)
            return false;
    return node->input_count > 0 && node->inputs[0];
}

bool onnx_fold(importer *im, onnx_node *node)
{
    if (!node->rule || !node->outputs[0]) /* an operator of that name in another domain means something else */
        return true;
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
        if (!is(node, folds[i].name))
            continue;
        /* What depends on no tensor of the model is there before the step: it is a constant of the file. */
        node->is_folded = is(node, "Constant") || is(node, "Shape") || is(node, "Size");
        if (onnx_value_elements(node->outputs[0]) > MOST_KNOWN || (!folds[i].any_input && !inputs_are_known(node)))
            return true;
        if (!folds[i].fold(im, node))
            return false;
        node->is_folded |= node->outputs[0]->known != NULL;
        return true;
    }
    return true;
}
