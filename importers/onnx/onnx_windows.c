/* Shapes of operators that slide a window, resize, or run over a sequence. */
#include <string.h>

#include "onnx_object.h"

/* No window is larger, and no sum of such numbers overflows. */
enum { MOST_NUMBER = 1 << 24 };

/* A number of an attribute for one axis of a window; the default where there is none. */
static bool number_at(importer *im, const onnx_node *node, const char *name, size_t position, size_t count,
                      int64_t otherwise, int64_t *number)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    *number = otherwise;
    if (!attribute || attribute->n_ints == 0)
        return true;
    if (attribute->n_ints != count)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "'%s' has %zu numbers, not %zu", name, attribute->n_ints, count);
    *number = attribute->ints[position];
    if (*number < 0 || *number > MOST_NUMBER)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "'%s' is out of range", name);
    return true;
}

typedef struct window {
    int64_t size, stride, spread, before, after;
} window;

static bool read_window(importer *im, const onnx_node *node, unsigned axis, unsigned axes, int64_t kernel, window *w)
{
    if (!number_at(im, node, "kernel_shape", axis, axes, kernel, &w->size) ||
        !number_at(im, node, "strides", axis, axes, 1, &w->stride) ||
        !number_at(im, node, "dilations", axis, axes, 1, &w->spread) ||
        !number_at(im, node, "pads", axis, 2 * (size_t)axes, 0, &w->before) ||
        !number_at(im, node, "pads", axis + axes, 2 * (size_t)axes, 0, &w->after))
        return false;
    if (w->size < 1 || w->stride < 1 || w->spread < 1)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its window has a size, stride or dilation of 0");
    if (w->size > MOST_NUMBER)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its window is too large");
    return true;
}

static bool slide(importer *im, const onnx_node *node, unsigned axis, unsigned axes, int64_t kernel, int64_t *size)
{
    char padding[32];
    window w;
    if (!read_window(im, node, axis, axes, kernel, &w))
        return false;
    onnx_attribute_text(node, "auto_pad", padding);
    if (strncmp(padding, "SAME", 4) == 0) {
        *size = (*size + w.stride - 1) / w.stride;
        return true;
    }
    if (strcmp(padding, "VALID") == 0)
        w.before = w.after = 0;
    const int64_t extent = (w.size - 1) * w.spread + 1, room = *size + w.before + w.after - extent;
    if (room < 0)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its window of %lld is larger than its input", (long long)extent);
    const bool up = onnx_attribute_int(node, "ceil_mode", 0) != 0;
    *size = (room + (up ? w.stride - 1 : 0)) / w.stride + 1;
    return true;
}

static bool is_image(importer *im, const onnx_node *node, bool has_weights)
{
    if (node->input_count < (has_weights ? 2u : 1u) || !node->inputs[0] || (has_weights && !node->inputs[1]))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "an input is missing");
    if (node->inputs[0]->shape.rank < 3 || (has_weights && node->inputs[1]->shape.rank != node->inputs[0]->shape.rank))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it needs an input with a batch, channels and at least one axis%s",
                         has_weights ? ", and weights with as many dimensions" : "");
    return true;
}

bool shape_convolution(importer *im, const onnx_node *node)
{
    if (!is_image(im, node, true))
        return false;
    const onnx_shape *weights = &node->inputs[1]->shape;
    onnx_shape shape = node->inputs[0]->shape;
    const int64_t groups = onnx_attribute_int(node, "group", 1);
    int64_t channels;
    if (groups < 1 || __builtin_mul_overflow(weights->sizes[1], groups, &channels) || channels != shape.sizes[1])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its weights are not for %lld channels", (long long)shape.sizes[1]);
    shape.sizes[1] = weights->sizes[0];
    for (unsigned i = 2; i < shape.rank; i++)
        if (!slide(im, node, i - 2, shape.rank - 2, weights->sizes[i], &shape.sizes[i]))
            return false;
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_transposed_convolution(importer *im, const onnx_node *node)
{
    if (!is_image(im, node, true))
        return false;
    const onnx_shape *weights = &node->inputs[1]->shape;
    const Onnx__Attribute *stated = onnx_attribute(node, "output_shape");
    onnx_shape shape = node->inputs[0]->shape;
    const int64_t groups = onnx_attribute_int(node, "group", 1);
    const unsigned axes = shape.rank - 2;
    char padding[32];
    if (groups < 1 || weights->sizes[0] != shape.sizes[1] ||
        __builtin_mul_overflow(weights->sizes[1], groups, &shape.sizes[1]))
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its weights are not for %lld channels", (long long)shape.sizes[1]);
    for (unsigned i = 0; i < axes; i++) {
        window w;
        int64_t more, *size = &shape.sizes[i + 2];
        if (!read_window(im, node, i, axes, weights->sizes[i + 2], &w) ||
            !number_at(im, node, "output_padding", i, axes, 0, &more))
            return false;
        if (*size > INT32_MAX)
            return onnx_fail(im, REMAT_BAD_INPUT, node, "its output is too large");
        if (stated && stated->n_ints == axes)
            *size = stated->ints[i];
        else if (strncmp(onnx_attribute_text(node, "auto_pad", padding), "SAME", 4) == 0)
            *size *= w.stride;
        else
            *size = (*size - 1) * w.stride + more + (w.size - 1) * w.spread + 1 - w.before - w.after;
    }
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

bool shape_pool(importer *im, const onnx_node *node)
{
    if (!is_image(im, node, false))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    for (unsigned i = 2; i < shape.rank; i++)
        if (!slide(im, node, i - 2, shape.rank - 2, 0, &shape.sizes[i]))
            return false;
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape) && onnx_set_output(im, node, 1, 7, &shape);
}

bool shape_global_pool(importer *im, const onnx_node *node)
{
    if (!is_image(im, node, false))
        return false;
    onnx_shape shape = node->inputs[0]->shape;
    for (unsigned i = 2; i < shape.rank; i++)
        shape.sizes[i] = 1;
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

/* ---- resizing ---- */

/* Factors are floating-point numbers in an attribute, an initializer or a Constant. */
static bool find_factors(const onnx_node *node, const onnx_value *value, size_t rank, float *factors)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, "scales");
    const Onnx__Tensor *tensor = value ? value->constant : NULL;
    if (rank == 0)
        return false;
    if (!tensor && attribute && attribute->n_floats == rank)
        memcpy(factors, attribute->floats, rank * sizeof *factors);
    else if (tensor && tensor->n_float_data == rank)
        memcpy(factors, tensor->float_data, rank * sizeof *factors);
    else if (tensor && tensor->has_raw_data && tensor->raw_data.len == rank * sizeof *factors)
        memcpy(factors, tensor->raw_data.data, rank * sizeof *factors);
    else
        return false;
    return true;
}

bool shape_resize(importer *im, const onnx_node *node)
{
    if (node->input_count < 1 || !node->inputs[0])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "its input is missing");
    onnx_shape shape = node->inputs[0]->shape;
    const onnx_value *sizes = node->input_count > 3 ? node->inputs[3] : NULL;
    /* Upsample, and Resize of version 10, have the factors as their second input; later ones as their third. */
    const size_t at = node->input_count == 2 ? 1 : 2;
    const onnx_value *scales = at < node->input_count ? node->inputs[at] : NULL;
    float factors[MOST_DIMENSIONS];
    if (sizes && sizes->known && sizes->known_count == shape.rank)
        memcpy(shape.sizes, sizes->known, shape.rank * sizeof *shape.sizes);
    else if (find_factors(node, scales, shape.rank, factors))
        for (unsigned i = 0; i < shape.rank; i++) {
            const double size = (double)shape.sizes[i] * (double)factors[i];
            if (!(size >= 0 && size < 1e15))
                return onnx_fail(im, REMAT_BAD_INPUT, node, "a factor is out of range");
            shape.sizes[i] = (int64_t)size;
        }
    else
        return shape_stated(im, node);
    return onnx_set_output(im, node, 0, node->inputs[0]->type, &shape);
}

/* ---- recurrences ---- */

/* X is [steps, batch, inputs], R is [directions, gates * hidden, hidden]. */
bool shape_recurrent(importer *im, const onnx_node *node)
{
    if (node->input_count < 3 || !node->inputs[0] || !node->inputs[1] || !node->inputs[2])
        return onnx_fail(im, REMAT_BAD_INPUT, node, "an input is missing");
    const onnx_shape *x = &node->inputs[0]->shape, *r = &node->inputs[2]->shape;
    if (x->rank != 3 || r->rank != 3 || onnx_attribute_int(node, "layout", 0) != 0)
        return onnx_fail(im, REMAT_BAD_INPUT, node, "it needs an input of [steps, batch, inputs]");
    const onnx_shape all = {4, {x->sizes[0], r->sizes[0], x->sizes[1], r->sizes[2]}},
                     last = {3, {r->sizes[0], x->sizes[1], r->sizes[2]}};
    const int type = node->inputs[0]->type;
    return onnx_set_output(im, node, 0, type, &all) && onnx_set_output(im, node, 1, type, &last) &&
           onnx_set_output(im, node, 2, type, &last);
}
