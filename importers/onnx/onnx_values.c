/* The names of a file and what is known of them from the start: weights, inputs, stated shapes. */
#include <stdlib.h>
#include <string.h>

#include "onnx_object.h"

/* ---- types and shapes ---- */

unsigned onnx_type_bytes(int type)
{
    /* float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64, two complex types,
     * bfloat16, and four types of eight bits */
    static const unsigned char bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

bool onnx_type_is_float(int type)
{
    return type == 1 || type == 10 || type == 11 || type >= 16;
}

bool onnx_shape_elements(const onnx_shape *shape, uint64_t *elements)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < shape->rank; i++)
        if (shape->sizes[i] < 0 || __builtin_mul_overflow(product, (uint64_t)shape->sizes[i], &product) ||
            product > (uint64_t)1 << 56)
            return false;
    *elements = product;
    return true;
}

uint64_t onnx_value_elements(const onnx_value *value)
{
    uint64_t elements = 0;
    return value && onnx_shape_elements(&value->shape, &elements) ? elements : 0;
}

bool onnx_value_bytes(importer *im, const onnx_value *value, uint64_t *bytes)
{
    uint64_t elements;
    const unsigned size = onnx_type_bytes(value->type);
    if (size == 0)
        return onnx_fail(im, REMAT_BAD_INPUT, NULL, "'%.100s' has elements of type %d, which has no size here",
                         value->name, value->type);
    if (!onnx_shape_elements(&value->shape, &elements))
        return onnx_fail(im, REMAT_BAD_INPUT, NULL, "'%.100s' is too large", value->name);
    *bytes = elements * size;
    return true;
}

/* ---- dimensions with names ---- */

static bool dimension_size(importer *im, const Onnx__Dimension *dim, const char *of, unsigned position, bool is_input,
                           int64_t *size)
{
    const onnx_options *options = im->options;
    if (dim->has_dim_value && (!dim->dim_param || !dim->dim_param[0])) {
        *size = dim->dim_value;
        return *size >= 0 || onnx_fail(im, REMAT_BAD_INPUT, NULL, "dimension %u of '%.100s' is negative", position, of);
    }
    const char *name = dim->dim_param ? dim->dim_param : "";
    for (size_t i = 0; i < options->dimension_count; i++)
        if (*name && strcmp(options->dimensions[i].name, name) == 0) {
            *size = (int64_t)options->dimensions[i].size;
            return true;
        }
    if (position != 0 || !is_input) {
        *size = -1;
        return !is_input ||
               onnx_fail(im, REMAT_INVALID, NULL,
                         "dimension %u of the input '%.100s' has no number in the file; --dim %.60s=N sets it",
                         position, of, *name ? name : "NAME");
    }
    if (!options->batch && !im->warned_batch)
        onnx_warn(im, "the file leaves the batch size open; 1 is used, and --batch N sets it");
    im->warned_batch = true;
    *size = options->batch ? (int64_t)options->batch : 1;
    return true;
}

/* False with im->status REMAT_OK: the file does not say it. */
bool onnx_shape_stated(importer *im, const Onnx__ValueInfo *info, bool is_input, onnx_value *value)
{
    const Onnx__TensorType *type = info && info->type ? info->type->tensor_type : NULL;
    if (!type || !type->has_elem_type || !type->shape)
        return is_input
                   ? onnx_fail(im, REMAT_BAD_INPUT, NULL, "the input '%.100s' has no shape in the file", value->name)
                   : false;
    if (type->shape->n_dim > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, NULL, "'%.100s' has %zu dimensions; at most %d are read", value->name,
                         type->shape->n_dim, MOST_DIMENSIONS);
    value->type = type->elem_type;
    value->shape.rank = (unsigned)type->shape->n_dim;
    for (unsigned i = 0; i < value->shape.rank; i++) {
        if (!dimension_size(im, type->shape->dim[i], value->name, i, is_input, &value->shape.sizes[i]))
            return false;
        if (value->shape.sizes[i] < 0)
            return false;
    }
    return true;
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const onnx_value *)a)->name, ((const onnx_value *)b)->name);
}

onnx_value *onnx_value_find(const importer *im, const char *name)
{
    const onnx_value wanted = {.name = name};
    return bsearch(&wanted, im->values, im->value_count, sizeof *im->values, by_name);
}

/* An empty name stands for something that is left out. */
static void add_name(importer *im, const char *name)
{
    if (name && *name)
        im->values[im->value_count++] = (onnx_value){.name = name, .tensor = NO_TENSOR, .gradients = NO_TENSOR};
}

static bool collect_names(importer *im)
{
    const Onnx__Graph *graph = im->proto;
    size_t most = graph->n_initializer + graph->n_input + graph->n_output, links = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        links += graph->node[i]->n_input + graph->node[i]->n_output;
    im->values = calloc(most + links + 1, sizeof *im->values);
    im->links = calloc(links + 1, sizeof *im->links);
    im->nodes = calloc(graph->n_node + 1, sizeof *im->nodes);
    if (!im->values || !im->links || !im->nodes)
        return onnx_fail(im, REMAT_NO_MEMORY, NULL, "memory ran out");
    for (size_t i = 0; i < graph->n_initializer; i++)
        add_name(im, graph->initializer[i]->name);
    for (size_t i = 0; i < graph->n_input; i++)
        add_name(im, graph->input[i]->name);
    for (size_t i = 0; i < graph->n_output; i++)
        add_name(im, graph->output[i]->name);
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            add_name(im, graph->node[i]->input[k]);
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            add_name(im, graph->node[i]->output[k]);
    }
    qsort(im->values, im->value_count, sizeof *im->values, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < im->value_count; i++)
        if (kept == 0 || strcmp(im->values[kept - 1].name, im->values[i].name) != 0)
            im->values[kept++] = im->values[i];
    im->value_count = kept;
    return true;
}

static void link_nodes(importer *im)
{
    onnx_value **next = im->links;
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const Onnx__Node *proto = im->proto->node[i];
        onnx_node *node = &im->nodes[im->node_count++];
        *node = (onnx_node){.proto = proto,
                            .rule = onnx_operator_find(proto),
                            .inputs = next,
                            .outputs = next + proto->n_input,
                            .input_count = proto->n_input,
                            .output_count = proto->n_output,
                            .saved = NO_TENSOR};
        for (size_t k = 0; k < proto->n_input; k++)
            *next++ = onnx_value_find(im, proto->input[k]);
        for (size_t k = 0; k < proto->n_output; k++)
            *next++ = onnx_value_find(im, proto->output[k]);
    }
}

/* ---- what is there from the start ---- */

/* Weights that are trained have floating-point elements, and more than one: a single number is a constant of the model. */
static bool define_weights(importer *im)
{
    for (size_t i = 0; i < im->proto->n_initializer; i++) {
        const Onnx__Tensor *tensor = im->proto->initializer[i];
        onnx_value *value = tensor->name ? onnx_value_find(im, tensor->name) : NULL;
        if (!value)
            continue;
        if (value->is_defined)
            return onnx_fail(im, REMAT_BAD_INPUT, NULL, "there are two initializers '%.100s'", value->name);
        if (!onnx_tensor_numbers(im, tensor, value))
            return false;
        value->is_defined = value->is_weight = true;
        value->is_trained = value->wants_gradient = onnx_type_is_float(value->type) && onnx_value_elements(value) > 1;
    }
    return true;
}

/* Old files list their weights among the inputs too. */
static bool define_inputs(importer *im)
{
    for (size_t i = 0; i < im->proto->n_input; i++) {
        const Onnx__ValueInfo *info = im->proto->input[i];
        onnx_value *value = info->name ? onnx_value_find(im, info->name) : NULL;
        if (!value || value->is_weight)
            continue;
        if (!onnx_shape_stated(im, info, true, value))
            return false;
        value->is_defined = true;
    }
    return true;
}

static void note_stated(importer *im, Onnx__ValueInfo *const *infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        onnx_value *value = infos[i]->name ? onnx_value_find(im, infos[i]->name) : NULL;
        if (value)
            value->stated = infos[i];
    }
}

bool onnx_values_collect(importer *im)
{
    if (!collect_names(im))
        return false;
    link_nodes(im);
    note_stated(im, im->proto->output, im->proto->n_output);
    note_stated(im, im->proto->value_info, im->proto->n_value_info);
    return define_weights(im) && define_inputs(im);
}
