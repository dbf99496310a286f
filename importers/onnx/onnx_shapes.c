/* Shapes of outputs from shapes of inputs: operators that work element by element, products, and moves of elements. Windows
 * and recurrences are in onnx_windows.c. All inputs are defined. */
#include <string.h>

#include "onnx_object.h"

bool onnx_set_output(importer *im, const onnx_node *node, size_t output, int type, const onnx_shape *shape)
{
    uint64_t elements;
    if (output >= node->output_count || !node->outputs[output])
        return true;
    if (!onnx_shape_elements(shape, &elements))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "the shape of its output has a negative size or is too large");
    node->outputs[output]->type = type;
    node->outputs[output]->shape = *shape;
    return true;
}

static const onnx_value *input(const onnx_node *node, size_t i)
{
    return i < node->input_count ? node->inputs[i] : NULL;
}

static bool need(importer *im, const onnx_node *node, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!input(node, i))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "input %zu is missing", i);
    return true;
}

/* An axis, counted from the end where it is negative. */
static bool find_axis(importer *im, const onnx_node *node, int64_t axis, unsigned rank, unsigned *found)
{
    *found = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "axis %lld is not one of %u", (long long)axis, rank);
    *found = (unsigned)(axis < 0 ? axis + rank : axis);
    return true;
}

/* Numbers that newer operators have as an input and older ones as an attribute; NULL: none. */
static bool find_numbers(importer *im, const onnx_node *node, size_t position, const char *name,
                         const int64_t **numbers, size_t *count)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    const onnx_value *value = input(node, position);
    *numbers = NULL;
    *count = 0;
    if (value) {
        if (!value->known) {
            im->lacks_numbers = true;
            return onnx_fail(im, REMAT_BAD_INPUT, node, "'%.100s' must be known without running the model",
                             value->name);
        }
        *numbers = value->known;
        *count = value->known_count;
    } else if (attribute && attribute->n_ints) {
        *numbers = attribute->ints;
        *count = attribute->n_ints;
    }
    return true;
}

/* ---- element by element ---- */

bool shape_same(importer *im, const onnx_node *node)
{
    return need(im, node, 1) && onnx_set_output(im, node, 0, node->inputs[0]->type, &node->inputs[0]->shape);
}

static bool broadcast(importer *im, const onnx_node *node, size_t first, onnx_shape *all)
{
    *all = (onnx_shape){0};
    for (size_t i = first; i < node->input_count; i++) {
        const onnx_shape *one = node->inputs[i] ? &node->inputs[i]->shape : &(onnx_shape){0};
        if (one->rank > all->rank) {
            memmove(all->sizes + (one->rank - all->rank), all->sizes, all->rank * sizeof *all->sizes);
            for (unsigned k = 0; k < one->rank - all->rank; k++)
                all->sizes[k] = 1;
            all->rank = one->rank;
        }
        for (unsigned k = 0; k < one->rank; k++) {
            int64_t *size = &all->sizes[all->rank - one->rank + k];
            if (one->sizes[k] != *size && *size != 1 && one->sizes[k] != 1)
                return onnx_fail(im, REMAT_BAD_INPUT, node, "its inputs have shapes that do not go together");
            *size = *size == 1 ? one->sizes[k] : *size;
        }
    }
    return true;
}

bool shape_broadcast(importer *im, const onnx_node *node)
{
    onnx_shape shape;
    return need(im, node, 1) && broadcast(im, node, 0, &shape) &&
           onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_compare(importer *im, const onnx_node *node)
{
    onnx_shape shape;
    return need(im, node, 1) && broadcast(im, node, 0, &shape) && onnx_set_output(im, node, 0, 9, &shape);
}

bool shape_where(importer *im, const onnx_node *node)
{
    onnx_shape shape;
    return need(im, node, 3) && broadcast(im, node, 0, &shape) &&
           onnx_set_output(im, node, 0, node->inputs[1]->type, &shape);
}

bool shape_cast(importer *im, const onnx_node *node)
{
    return need(im, node, 1) && onnx_set_output(im, node, 0, (int)onnx_attribute_int(node, "to", node->inputs[0]->type),
                                                &node->inputs[0]->shape);
}

bool shape_dropout(importer *im, const onnx_node *node)
{
    return shape_same(im, node) && onnx_set_output(im, node, 1, 9, &node->inputs[0]->shape);
}

/* Further outputs are statistics: of batch normalization for each channel, as its other inputs are; of layer normalization for
 * each row. */
bool shape_normalized(importer *im, const onnx_node *node)
{
    if (!shape_same(im, node))
        return false;
    const bool by_row = strcmp(node->proto->op_type, "LayerNormalization") == 0;
    onnx_shape rows = node->inputs[0]->shape;
    unsigned axis = 0;
    if (by_row && !find_axis(im, node, onnx_attribute_int(node, "axis", -1), rows.rank, &axis))
        return false;
    for (unsigned i = axis; i < rows.rank; i++)
        rows.sizes[i] = 1;
    for (size_t i = 1; i < node->output_count; i++) {
        const onnx_value *like = input(node, i);
        if (!onnx_set_output(im, node, i, 1, by_row || !like ? &rows : &like->shape))
            return false;
    }
    return true;
}

bool shape_loss(importer *im, const onnx_node *node)
{
    char how[32];
    onnx_shape shape = {0};
    if (!need(im, node, 2))
        return false;
    if (strcmp(onnx_attribute_text(node, "reduction", how), "none") == 0)
        shape = node->inputs[1]->shape;
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape) &&
           onnx_set_output(im, node, 1, node->inputs[0]->type, &node->inputs[0]->shape);
}

/* ---- products ---- */

bool shape_matmul(importer *im, const onnx_node *node)
{
    if (!need(im, node, 2))
        return false;
    onnx_shape a = node->inputs[0]->shape, b = node->inputs[1]->shape, batch, shape;
    const bool row = a.rank == 1, column = b.rank == 1;
    if (a.rank == 0 || b.rank == 0)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "a factor is a single number");
    if (row)
        a = (onnx_shape){2, {1, a.sizes[0]}};
    if (column)
        b = (onnx_shape){2, {b.sizes[0], 1}};
    if (a.sizes[a.rank - 1] != b.sizes[b.rank - 2])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it multiplies %lld columns by %lld rows",
                         (long long)a.sizes[a.rank - 1], (long long)b.sizes[b.rank - 2]);
    onnx_value left = {.shape = a}, right = {.shape = b}, *factors[] = {&left, &right};
    left.shape.rank -= 2;
    right.shape.rank -= 2;
    const onnx_node both = {.proto = node->proto, .inputs = factors, .input_count = 2};
    if (!broadcast(im, &both, 0, &batch))
        return false;
    shape = batch;
    if (!row)
        shape.sizes[shape.rank++] = a.sizes[a.rank - 2];
    if (!column)
        shape.sizes[shape.rank++] = b.sizes[b.rank - 1];
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_gemm(importer *im, const onnx_node *node)
{
    if (!need(im, node, 2))
        return false;
    const onnx_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    const bool turn_a = onnx_attribute_int(node, "transA", 0) != 0, turn_b = onnx_attribute_int(node, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || a->sizes[turn_a ? 0 : 1] != b->sizes[turn_b ? 1 : 0])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its matrices do not go together");
    return onnx_set_output(im, node, 0, node->inputs[0]->type,
                           &(onnx_shape){2, {a->sizes[turn_a ? 1 : 0], b->sizes[turn_b ? 0 : 1]}});
}

/* ---- moves of elements ---- */

bool shape_concat(importer *im, const onnx_node *node)
{
    unsigned axis;
    if (!need(im, node, 1))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (!find_axis(im, node, onnx_attribute_int(node, "axis", 0), shape.rank, &axis))
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
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "shape", &wanted, &count))
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
    if (!need(im, node, 1))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    onnx_shape shape = {.rank = from->rank};
    unsigned seen = 0;
    if (order && order->n_ints != from->rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it orders %zu axes of %u", order->n_ints, from->rank);
    for (unsigned i = 0; i < from->rank; i++) {
        unsigned axis = from->rank - 1 - i;
        if (order && !find_axis(im, node, order->ints[i], from->rank, &axis))
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
    if (!need(im, node, 1))
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
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "split", &parts, &count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (!find_axis(im, node, onnx_attribute_int(node, "axis", 0), shape.rank, &axis))
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

static int64_t within(int64_t at, int64_t size, int64_t least, int64_t most)
{
    at = at < 0 ? at + size : at;
    return at < least ? least : at > most ? most : at;
}

bool shape_slice(importer *im, const onnx_node *node)
{
    const int64_t *starts, *ends, *axes, *steps;
    size_t count, end_count, axis_count, step_count;
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "starts", &starts, &count) ||
        !find_numbers(im, node, 2, "ends", &ends, &end_count) ||
        !find_numbers(im, node, 3, "axes", &axes, &axis_count) ||
        !find_numbers(im, node, 4, "steps", &steps, &step_count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (count != end_count || (axes && axis_count != count) || (steps && step_count != count) || count > shape.rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its starts, ends, axes and steps do not go together");
    for (size_t i = 0; i < count; i++) {
        unsigned axis;
        const int64_t step = steps ? steps[i] : 1;
        if (!find_axis(im, node, axes ? axes[i] : (int64_t)i, shape.rank, &axis))
            return false;
        if (step == 0 || step == INT64_MIN)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "a step is 0");
        const int64_t size = node->inputs[0]->shape.sizes[axis];
        const int64_t from = step > 0 ? within(starts[i], size, 0, size) : within(starts[i], size, 0, size - 1);
        const int64_t to = step > 0 ? within(ends[i], size, 0, size) : within(ends[i], size, -1, size - 1);
        const int64_t length = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
        shape.sizes[axis] = length > 0 ? (length - 1) / stride + 1 : 0;
    }
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_gather(importer *im, const onnx_node *node)
{
    unsigned axis;
    if (!need(im, node, 2))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape, *indices = &node->inputs[1]->shape;
    onnx_shape shape = {0};
    if (!find_axis(im, node, onnx_attribute_int(node, "axis", 0), from->rank, &axis))
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
    return need(im, node, 2) && onnx_set_output(im, node, 0, node->inputs[0]->type, &node->inputs[1]->shape);
}

static bool reduce(importer *im, const onnx_node *node, const int64_t *axes, size_t count, bool keeps,
                   onnx_shape *shape)
{
    const onnx_shape *from = &node->inputs[0]->shape;
    unsigned gone = count ? 0 : (1u << from->rank) - 1, axis;
    for (size_t i = 0; i < count; i++) {
        if (!find_axis(im, node, axes[i], from->rank, &axis))
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
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "axes", &axes, &count))
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
    return need(im, node, 1) && reduce(im, node, &axis, 1, onnx_attribute_int(node, "keepdims", 1) != 0, &shape) &&
           onnx_set_output(im, node, 0, 7, &shape);
}

bool shape_squeeze(importer *im, const onnx_node *node)
{
    const int64_t *axes;
    size_t count;
    int64_t ones[MOST_DIMENSIONS];
    onnx_shape shape;
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "axes", &axes, &count))
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
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "axes", &axes, &count))
        return false;
    const onnx_shape *from = &node->inputs[0]->shape;
    onnx_shape shape = {0};
    if (count + from->rank > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its output has more than %d dimensions", MOST_DIMENSIONS);
    shape.rank = from->rank + (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        if (!find_axis(im, node, axes[i], shape.rank, &axis))
            return false;
        if (added >> axis & 1)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "an axis is named twice");
        added |= 1u << axis;
    }
    for (unsigned i = 0, k = 0; i < shape.rank; i++)
        shape.sizes[i] = added >> i & 1 ? 1 : from->sizes[k++];
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

/* ---- shapes from numbers ---- */

static bool shape_from_numbers(importer *im, const onnx_node *node, const int64_t *numbers, size_t count,
                               onnx_shape *shape)
{
    *shape = (onnx_shape){.rank = (unsigned)count};
    if (count > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "%zu dimensions are too many", count);
    for (size_t i = 0; i < count; i++)
        shape->sizes[i] = numbers[i];
    return true;
}

bool shape_expand(importer *im, const onnx_node *node)
{
    const int64_t *numbers;
    size_t count;
    onnx_value wanted = {0}, *both[] = {NULL, &wanted};
    onnx_shape shape;
    if (!need(im, node, 2) || !find_numbers(im, node, 1, "shape", &numbers, &count) ||
        !shape_from_numbers(im, node, numbers, count, &wanted.shape))
        return false;
    both[0] = node->inputs[0];
    const onnx_node pair = {.proto = node->proto, .inputs = both, .input_count = 2};
    return broadcast(im, &pair, 0, &shape) && onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_of_shape(importer *im, const onnx_node *node)
{
    if (!need(im, node, 1))
        return false;
    const int64_t rank = node->inputs[0]->shape.rank;
    const int64_t start = within(onnx_attribute_int(node, "start", 0), rank, 0, rank);
    const int64_t end = within(onnx_attribute_int(node, "end", rank), rank, 0, rank);
    return onnx_set_output(im, node, 0, 7, &(onnx_shape){1, {end > start ? end - start : 0}});
}

bool shape_of_size(importer *im, const onnx_node *node)
{
    return need(im, node, 1) && onnx_set_output(im, node, 0, 7, &(onnx_shape){0});
}

bool shape_filled(importer *im, const onnx_node *node)
{
    const int64_t *numbers;
    size_t count;
    onnx_shape shape;
    const Onnx__Attribute *value = onnx_attribute(node, "value");
    return need(im, node, 1) && find_numbers(im, node, 0, "", &numbers, &count) &&
           shape_from_numbers(im, node, numbers, count, &shape) &&
           onnx_set_output(im, node, 0, value && value->t && value->t->has_data_type ? value->t->data_type : 1, &shape);
}

bool shape_range(importer *im, const onnx_node *node)
{
    int64_t numbers[3], length;
    if (!need(im, node, 3))
        return false;
    for (size_t i = 0; i < 3; i++) {
        im->lacks_numbers = !node->inputs[i]->known || node->inputs[i]->known_count != 1;
        if (im->lacks_numbers)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "'%.100s' must be known without running the model",
                             node->inputs[i]->name);
        numbers[i] = node->inputs[i]->known[0];
    }
    if (numbers[2] == 0 || numbers[2] == INT64_MIN || __builtin_sub_overflow(numbers[1], numbers[0], &length) ||
        length == INT64_MIN)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its numbers are out of range");
    const int64_t step = numbers[2] < 0 ? -numbers[2] : numbers[2];
    length = numbers[2] < 0 ? -length : length;
    return onnx_set_output(im, node, 0, node->inputs[0]->type,
                           &(onnx_shape){1, {length > 0 ? (length - 1) / step + 1 : 0}});
}

bool shape_pad(importer *im, const onnx_node *node)
{
    const int64_t *pads;
    size_t count;
    if (!need(im, node, 1) || !find_numbers(im, node, 1, "pads", &pads, &count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (count != 2 * (size_t)shape.rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "%zu numbers do not pad %u dimensions", count, shape.rank);
    for (unsigned i = 0; i < shape.rank; i++)
        if (__builtin_add_overflow(shape.sizes[i], pads[i], &shape.sizes[i]) ||
            __builtin_add_overflow(shape.sizes[i], pads[i + shape.rank], &shape.sizes[i]))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its output is too large");
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_tile(importer *im, const onnx_node *node)
{
    const int64_t *times;
    size_t count;
    if (!need(im, node, 2) || !find_numbers(im, node, 1, "", &times, &count))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    if (count != shape.rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it repeats %zu of %u dimensions", count, shape.rank);
    for (unsigned i = 0; i < shape.rank; i++)
        if (__builtin_mul_overflow(shape.sizes[i], times[i], &shape.sizes[i]))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its output is too large");
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_constant(importer *im, const onnx_node *node)
{
    const Onnx__Attribute *tensor = onnx_attribute(node, "value"), *ints = onnx_attribute(node, "value_ints"),
                          *floats = onnx_attribute(node, "value_floats");
    if (node->output_count < 1 || !node->outputs[0])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it has no output");
    if (tensor && tensor->t)
        return onnx_tensor_numbers(im, tensor->t, node->outputs[0]);
    if (ints || floats)
        return onnx_set_output(im, node, 0, ints ? 7 : 1,
                               &(onnx_shape){1, {(int64_t)(ints ? ints->n_ints : floats->n_floats)}});
    if (!onnx_attribute(node, "value_int") && !onnx_attribute(node, "value_float"))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its value is of a kind that is not read");
    return onnx_set_output(im, node, 0, onnx_attribute(node, "value_int") ? 7 : 1, &(onnx_shape){0});
}

bool shape_stated(importer *im, const onnx_node *node)
{
    for (size_t i = 0; i < node->output_count; i++) {
        onnx_value *value = node->outputs[i];
        if (value && !onnx_shape_stated(im, value->stated, false, value))
            return im->status == REMAT_OK
                       ? onnx_fail(im, REMAT_BAD_INPUT, node,
                                   "the operator is unknown, and the file does not state the shape of '%.100s'",
                                   value->name)
                       : false;
    }
    return true;
}
