#include <stdlib.h>
#include <string.h>

#include "onnx_object.h"

const Onnx__Attribute *onnx_attribute(const onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->name && strcmp(node->proto->attribute[i]->name, name) == 0)
            return node->proto->attribute[i];
    return NULL;
}

int64_t onnx_attribute_int(const onnx_node *node, const char *name, int64_t otherwise)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    return attribute && attribute->has_i ? attribute->i : otherwise;
}

const char *onnx_attribute_text(const onnx_node *node, const char *name, char text[32])
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    size_t length = attribute && attribute->has_s ? attribute->s.len : 0;
    length = length < 31 ? length : 31;
    if (length)
        memcpy(text, attribute->s.data, length);
    text[length] = '\0';
    return text;
}

/* Numbers in a file are little-endian. */
static int64_t raw_number(const uint8_t *bytes, unsigned size)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return size == 8 ? (int64_t)number : (int64_t)(int32_t)(uint32_t)number;
}

static bool is_whole(int type)
{
    return type == 6 || type == 7;
}

/* Small tensors of whole numbers are kept: they are shapes, axes and indices. Others need only their sizes. */
bool onnx_tensor_numbers(importer *im, const Onnx__Tensor *tensor, onnx_value *value)
{
    uint64_t count;
    if (tensor->n_dims > MOST_DIMENSIONS)
        return onnx_fail(im, REMAT_BAD_INPUT, NULL, "'%.100s' has %zu dimensions; at most %d are read", value->name,
                         tensor->n_dims, MOST_DIMENSIONS);
    value->constant = tensor;
    value->type = tensor->has_data_type ? tensor->data_type : 0;
    value->shape.rank = (unsigned)tensor->n_dims;
    for (size_t i = 0; i < tensor->n_dims; i++)
        value->shape.sizes[i] = tensor->dims[i];
    if (!onnx_shape_elements(&value->shape, &count))
        return onnx_fail(im, REMAT_BAD_INPUT, NULL, "'%.100s' has a size that is negative or too large", value->name);
    if (!is_whole(value->type) || count > MOST_KNOWN)
        return true;
    const unsigned size = onnx_type_bytes(value->type);
    const bool raw = tensor->has_raw_data && tensor->raw_data.len == count * size;
    if (!raw && tensor->n_int64_data != count && tensor->n_int32_data != count)
        return true; /* kept in another file, or damaged: whoever needs the numbers says so */
    if (!onnx_set_known(im, value, (size_t)count))
        return false;
    for (size_t i = 0; i < count; i++)
        value->known[i] = raw                             ? raw_number(tensor->raw_data.data + i * size, size)
                          : tensor->n_int64_data == count ? tensor->int64_data[i]
                                                          : tensor->int32_data[i];
    return true;
}
