/* Shapes of outputs from shapes of inputs: operators that work element by element, products, and those whose shapes are
 * numbers in the graph. Moves of elements are in onnx_moves.c, windows and recurrences in onnx_windows.c. All inputs are defined. */
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

const onnx_value *onnx_input(const onnx_node *node, size_t i)
{
    return i < node->input_count ? node->inputs[i] : NULL;
}

bool onnx_need(importer *im, const onnx_node *node, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!onnx_input(node, i))
            return onnx_fail(im, REMAT_BAD_INPUT, node, "input %zu is missing", i);
    return true;
}

/* An axis, counted from the end where it is negative. */
bool onnx_find_axis(importer *im, const onnx_node *node, int64_t axis, unsigned rank, unsigned *found)
{
    *found = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "axis %lld is not one of %u", (long long)axis, rank);
    *found = (unsigned)(axis < 0 ? axis + rank : axis);
    return true;
}

/* Numbers that newer operators have as an input and older ones as an attribute; NULL: none. */
bool onnx_find_numbers(importer *im, const onnx_node *node, size_t position, const char *name, const int64_t **numbers,
                       size_t *count)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    const onnx_value *value = onnx_input(node, position);
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

int64_t onnx_within(int64_t at, int64_t size, int64_t least, int64_t most)
{
    at = at < 0 ? at + size : at;
    return at < least ? least : at > most ? most : at;
}

/* ---- element by element ---- */

bool shape_same(importer *im, const onnx_node *node)
{
    return onnx_need(im, node, 1) && onnx_set_output(im, node, 0, node->inputs[0]->type, &node->inputs[0]->shape);
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
    return onnx_need(im, node, 1) && broadcast(im, node, 0, &shape) &&
           onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_compare(importer *im, const onnx_node *node)
{
    onnx_shape shape;
    return onnx_need(im, node, 1) && broadcast(im, node, 0, &shape) && onnx_set_output(im, node, 0, 9, &shape);
}

bool shape_where(importer *im, const onnx_node *node)
{
    onnx_shape shape;
    return onnx_need(im, node, 3) && broadcast(im, node, 0, &shape) &&
           onnx_set_output(im, node, 0, node->inputs[1]->type, &shape);
}

bool shape_cast(importer *im, const onnx_node *node)
{
    return onnx_need(im, node, 1) &&
           onnx_set_output(im, node, 0, (int)onnx_attribute_int(node, "to", node->inputs[0]->type),
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
    if (by_row && !onnx_find_axis(im, node, onnx_attribute_int(node, "axis", -1), rows.rank, &axis))
        return false;
    for (unsigned i = axis; i < rows.rank; i++)
        rows.sizes[i] = 1;
    for (size_t i = 1; i < node->output_count; i++) {
        const onnx_value *like = onnx_input(node, i);
        if (!onnx_set_output(im, node, i, 1, by_row || !like ? &rows : &like->shape))
            return false;
    }
    return true;
}

bool shape_loss(importer *im, const onnx_node *node)
{
    char how[32];
    onnx_shape shape = {0};
    if (!onnx_need(im, node, 2))
        return false;
    if (strcmp(onnx_attribute_text(node, "reduction", how), "none") == 0)
        shape = node->inputs[1]->shape;
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape) &&
           onnx_set_output(im, node, 1, node->inputs[0]->type, &node->inputs[0]->shape);
}

/* ---- products ---- */

bool shape_matmul(importer *im, const onnx_node *node)
{
    if (!onnx_need(im, node, 2))
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
    if (!onnx_need(im, node, 2))
        return false;
    const onnx_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    const bool turn_a = onnx_attribute_int(node, "transA", 0) != 0, turn_b = onnx_attribute_int(node, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || a->sizes[turn_a ? 0 : 1] != b->sizes[turn_b ? 1 : 0])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its matrices do not go together");
    return onnx_set_output(im, node, 0, node->inputs[0]->type,
                           &(onnx_shape){2, {a->sizes[turn_a ? 1 : 0], b->sizes[turn_b ? 0 : 1]}});
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
    if (!onnx_need(im, node, 2) || !onnx_find_numbers(im, node, 1, "shape", &numbers, &count) ||
        !shape_from_numbers(im, node, numbers, count, &wanted.shape))
        return false;
    both[0] = node->inputs[0];
    const onnx_node pair = {.proto = node->proto, .inputs = both, .input_count = 2};
    return broadcast(im, &pair, 0, &shape) && onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_of_shape(importer *im, const onnx_node *node)
{
    if (!onnx_need(im, node, 1))
        return false;
    const int64_t rank = node->inputs[0]->shape.rank;
    const int64_t start = onnx_within(onnx_attribute_int(node, "start", 0), rank, 0, rank);
    const int64_t end = onnx_within(onnx_attribute_int(node, "end", rank), rank, 0, rank);
    return onnx_set_output(im, node, 0, 7, &(onnx_shape){1, {end > start ? end - start : 0}});
}

bool shape_of_size(importer *im, const onnx_node *node)
{
    return onnx_need(im, node, 1) && onnx_set_output(im, node, 0, 7, &(onnx_shape){0});
}

bool shape_filled(importer *im, const onnx_node *node)
{
    const int64_t *numbers;
    size_t count;
    onnx_shape shape;
    const Onnx__Attribute *value = onnx_attribute(node, "value");
    return onnx_need(im, node, 1) && onnx_find_numbers(im, node, 0, "", &numbers, &count) &&
           shape_from_numbers(im, node, numbers, count, &shape) &&
           onnx_set_output(im, node, 0, value && value->t && value->t->has_data_type ? value->t->data_type : 1, &shape);
}

bool shape_range(importer *im, const onnx_node *node)
{
    int64_t numbers[3], length;
    if (!onnx_need(im, node, 3))
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
    if (!onnx_need(im, node, 1) || !onnx_find_numbers(im, node, 1, "pads", &pads, &count))
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
    if (!onnx_need(im, node, 2) || !onnx_find_numbers(im, node, 1, "", &times, &count))
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
