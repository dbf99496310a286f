/* Shapes of outputs from shapes of inputs: operators that move elements, and reductions. All inputs are defined. */
#include <string.h>

#include "onnx_object.h"

bool shape_concat(importer *im, const onnx_node *node)
{
    unsigned axis;
    if (!onnx_need(im, node, 1))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (!onnx_find_axis(im, node, onnx_attribute_int(node, "axis", 0), shape.rank, &axis))
        return false;
    for (size_t i = 1; i < node->input_count; i++) {
        const onnx_shape *one = node->inputs[i] ? &node->inputs[i]->shape : NULL;
        if (!one || one->rank != shape.rank)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its inputs have shapes that do not go together");
        for (unsigned k = 0; k < shape.rank; k++)
            if (k != axis && one->sizes[k] != shape.sizes[k])
                return onnx_fail(im, REMAT_BAD_INPUT, node, "its inputs have shapes that do not go together");
        if (__builtin_add_overflow(shape.sizes[axis], one->sizes[axis], &shape.sizes[axis]))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its output is too large");
    }
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_reshape(importer *im, const onnx_node *node)
{
    const int64_t *wanted;
    size_t count;
    uint64_t all, rest = 1, made;
    onnx_shape shape = {0};
    unsigned open = MOST_DIMENSIONS;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "shape", &wanted, &count))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    if (count > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "%zu dimensions are too many", count);
    const bool keeps_zero = onnx_attribute_int(node, "allowzero", 0) != 0;
    shape.rank = (unsigned)count;
    for (unsigned i = 0; i < count; i++) {
        shape.sizes[i] = wanted[i] == 0 && !keeps_zero && i < from->rank ? from->sizes[i] : wanted[i];
        if (wanted[i] == -1 && open == MOST_DIMENSIONS)
            open = i;
        else if (shape.sizes[i] < 0 || __builtin_mul_overflow(rest, (uint64_t)shape.sizes[i], &rest))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its shape has a negative size or is too large");
    }
    onnx_shape_elements(from, &all);
    if (open < MOST_DIMENSIONS)
        shape.sizes[open] = rest ? (int64_t)(all / rest) : 0;
    if (!onnx_shape_elements(&shape, &made) || made != all)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "%llu elements do not fill its shape", (unsigned long long)all);
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_transpose(importer *im, const onnx_node *node)
{
    const Onnx__Attribute *order = onnx_attribute(node, "perm");
    if (!onnx_need(im, node, 1))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    onnx_shape shape = {.rank = from->rank};
    unsigned seen = 0;
    if (order && order->n_ints != from->rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it orders %zu axes of %u", order->n_ints, from->rank);
    for (unsigned i = 0; i < from->rank; i++) {
        unsigned axis = from->rank - 1 - i;
        if (order && !onnx_find_axis(im, node, order->ints[i], from->rank, &axis))
            return false;
        seen |= 1u << axis;
        shape.sizes[i] = from->sizes[axis];
    }
    if (seen != (1u << from->rank) - 1)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "an axis is named twice");
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_flatten(importer *im, const onnx_node *node)
{
    if (!onnx_need(im, node, 1))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    int64_t axis = onnx_attribute_int(node, "axis", 1);
    axis = axis < 0 ? axis + from->rank : axis;
    if (axis < 0 || axis > from->rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "axis %lld is not one of %u", (long long)axis, from->rank);
    onnx_shape shape = {2, {1, 1}};
    for (unsigned i = 0; i < from->rank; i++)
        shape.sizes[i >= axis] *= from->sizes[i]; /* no more than all elements */
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_split(importer *im, const onnx_node *node)
{
    const int64_t *parts;
    size_t count;
    unsigned axis;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "split", &parts, &count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (!onnx_find_axis(im, node, onnx_attribute_int(node, "axis", 0), shape.rank, &axis))
        return false;
    if (node->output_count == 0 || (parts && count < node->output_count))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it has %zu outputs and %zu sizes", node->output_count, count);
    const int64_t all = shape.sizes[axis], each = (all + (int64_t)node->output_count - 1) / (int64_t)node->output_count;
    int64_t left = all;
    for (size_t i = 0; i < node->output_count; i++) {
        shape.sizes[axis] = parts ? parts[i] : each < left ? each : left;
        left -= shape.sizes[axis];
        if (shape.sizes[axis] < 0 || left < 0)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its parts are larger than its input");
        if (!onnx_set_output(im, node, i, node->inputs[0]->type, &shape))
            return false;
    }
    return true;
}

bool shape_slice(importer *im, const onnx_node *node)
{
    const int64_t *starts, *ends, *axes, *steps;
    size_t count, end_count, axis_count, step_count;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "starts", &starts, &count) ||
        !onnx_find_numbers(im, node, 2, "ends", &ends, &end_count) ||
        !onnx_find_numbers(im, node, 3, "axes", &axes, &axis_count) ||
        !onnx_find_numbers(im, node, 4, "steps", &steps, &step_count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (count != end_count || (axes && axis_count != count) || (steps && step_count != count) || count > shape.rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its starts, ends, axes and steps do not go together");
    for (size_t i = 0; i < count; i++) {
        unsigned axis;
        const int64_t step = steps ? steps[i] : 1;
        if (!onnx_find_axis(im, node, axes ? axes[i] : (int64_t)i, shape.rank, &axis))
            return false;
        if (step == 0 || step == INT64_MIN)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "a step is 0");
        const int64_t size = node->inputs[0]->shape.sizes[axis];
        const int64_t from =
            step > 0 ? onnx_within(starts[i], size, 0, size) : onnx_within(starts[i], size, 0, size - 1);
        const int64_t to = step > 0 ? onnx_within(ends[i], size, 0, size) : onnx_within(ends[i], size, -1, size - 1);
        const int64_t length = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
        shape.sizes[axis] = length > 0 ? (length - 1) / stride + 1 : 0;
    }
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_gather(importer *im, const onnx_node *node)
{
    unsigned axis;
    if (!onnx_need(im, node, 2))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape, *indices = &node->inputs[1]->shape;
    onnx_shape shape = {0};
    if (!onnx_find_axis(im, node, onnx_attribute_int(node, "axis", 0), from->rank, &axis))
        return false;
    if (from->rank + indices->rank - 1 > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its output has more than %d dimensions", MOST_DIMENSIONS);
    for (unsigned i = 0; i < axis; i++)
        shape.sizes[shape.rank++] = from->sizes[i];
    for (unsigned i = 0; i < indices->rank; i++)
        shape.sizes[shape.rank++] = indices->sizes[i];
    for (unsigned i = axis + 1; i < from->rank; i++)
        shape.sizes[shape.rank++] = from->sizes[i];
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_like_indices(importer *im, const onnx_node *node)
{
    return onnx_need(im, node, 2) && onnx_set_output(im, node, 0, node->inputs[0]->type, &node->inputs[1]->shape);
}

static bool reduce(importer *im, const onnx_node *node, const int64_t *axes, size_t count, bool keeps,
                   onnx_shape *shape)
{
    const onnx_shape *from = &node->inputs[0]->shape;
    unsigned gone = count ? 0 : (1u << from->rank) - 1, axis;
    for (size_t i = 0; i < count; i++) {
        if (!onnx_find_axis(im, node, axes[i], from->rank, &axis))
            return false;
        gone |= 1u << axis;
    }
    *shape = (onnx_shape){0};
    for (unsigned i = 0; i < from->rank; i++)
        if (!(gone >> i & 1))
            shape->sizes[shape->rank++] = from->sizes[i];
        else if (keeps)
            shape->sizes[shape->rank++] = 1;
    return true;
}

bool shape_reduce(importer *im, const onnx_node *node)
{
    const int64_t *axes;
    size_t count;
    onnx_shape shape;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "axes", &axes, &count))
        return false;
    if (!count && onnx_attribute_int(node, "noop_with_empty_axes", 0))
        return shape_same(im, node);
    return reduce(im, node, axes, count, onnx_attribute_int(node, "keepdims", 1) != 0, &shape) &&
           onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_arg(importer *im, const onnx_node *node)
{
    const int64_t axis = onnx_attribute_int(node, "axis", 0);
    onnx_shape shape;
    return onnx_need(im, node, 1) && reduce(im, node, &axis, 1, onnx_attribute_int(node, "keepdims", 1) != 0, &shape) &&
           onnx_set_output(im, node, 0, 7, &shape);
}

bool shape_squeeze(importer *im, const onnx_node *node)
{
    const int64_t *axes;
    size_t count;
    int64_t ones[MOST_DIMENSIONS];
    onnx_shape shape;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "axes", &axes, &count))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    if (!count) {
        for (unsigned i = 0; i < from->rank; i++)
            if (from->sizes[i] == 1)
                ones[count++] = i;
        axes = ones;
        if (!count)
            return shape_same(im, node);
    }
    uint64_t before, after;
    if (!reduce(im, node, axes, count, false, &shape))
        return false;
    onnx_shape_elements(from, &before);
    if (!onnx_shape_elements(&shape, &after) || before != after)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it removes an axis with more than one element");
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_unsqueeze(importer *im, const onnx_node *node)
{
    const int64_t *axes;
    size_t count;
    unsigned added = 0, axis;
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "axes", &axes, &count))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    onnx_shape shape = {0};
    if (count + from->rank > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its output has more than %d dimensions", MOST_DIMENSIONS);
    shape.rank = from->rank + (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        if (!onnx_find_axis(im, node, axes[i], shape.rank, &axis))
            return false;
        if (added >> axis & 1)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "an axis is named twice");
        added |= 1u << axis;
    }
    for (unsigned i = 0, k = 0; i < shape.rank; i++)
        shape.sizes[i] = added >> i & 1 ? 1 : from->sizes[k++];
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}
