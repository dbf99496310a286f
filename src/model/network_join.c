/* Joins the gradient of an activation with the product behind it: the input gradient of the fully_connected that alone reads the activation
 * becomes the gradient of the activation's input.
 *
 *     forward    x -> gelu -> y -> fully_connected -> z
 *     backward   dx <- fully_connected, times the derivative at x <- dz
 *
 * The gradient of y never exists. A device may compute this from sums that it has not rounded yet, so the bits are not those of two
 * operations. They must not depend on the plan either: layers are joined here, for all plans alike, or not at all. (What
 * train/executor_fuse.c fuses depends on the plan and has the same bits.) */
#include "backend/backend.h"
#include "layers/activation.h"
#include "model/network_builder.h"

/* Whether the device has a kernel for the joined operation. It takes weights in bf16 where it converts them for products. */
static bool has_kernel(const layer_node *node)
{
    const remat_dtype weight =
        node->device->half_products && node->dtype == REMAT_BF16 ? REMAT_BF16 : node->parameters[0].dtype;
    char *some = (char *)node; /* any address: only types count */
    const tensor_ref x = {some, node->input_dtypes[0]};
    const op_gemm joined = {.a = {some, node->dtype}, .b = {some, weight}, .c = x, .activated = x, .derivative_at = x};
    char types[OPERATION_MAX_TENSORS + 1];
    operation_types(OP_gemm, &joined, types);
    return backend_find_kernel(node->device, OP_gemm, types) != NULL;
}

static bool is_joined(const network_builder *builder, const network_layer *layer, activation_kind *kind)
{
    const remat_network *network = builder->network;
    const layer_node *node = &layer->node;
    if (node->type != &layer_type_fully_connected || node->device->joins == ACTIVATION_NONE)
        return false;
    const network_layer *activation = &network->layers[layer->inputs[0]];
    if (activation->node.type != &layer_type_activation || builder->readers[layer->inputs[0]] != 1)
        return false;
    /* What comes in is made by a product and read by nobody else: its gradient is written once. */
    const network_layer *source = &network->layers[activation->inputs[0]];
    const activation_options *options = activation->node.options;
    *kind = (activation_kind)options->activation;
    return *kind == node->device->joins && source->node.type == &layer_type_fully_connected &&
           builder->readers[activation->inputs[0]] == 1 && activation->node.saved_count == 0 &&
           activation->node.input_dtypes[0] == activation->node.dtype && has_kernel(node);
}

void network_join(network_builder *builder)
{
    remat_network *network = builder->network;
    for (size_t n = 0; n < network->layer_count; n++) {
        network_layer *layer = &network->layers[n];
        activation_kind kind;
        if (!is_joined(builder, layer, &kind))
            continue;
        layer->joined = layer->inputs[0];
        layer->node.joined = kind;
    }
}
