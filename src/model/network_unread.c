/* Finds layers whose backward reads their own output, while no other layer's backward reads it: relu before max pooling, a sum, dropout or
 * a frozen linear layer. Such a layer may save something smaller instead. */
#include "base/alloc.h"
#include "base/error.h"
#include "model/network_builder.h"

bool network_layer_is_trained(const layer_node *node)
{
    for (uint32_t p = 0; p < node->parameter_count; p++)
        if (layer_parameter_is_trained(&node->parameters[p]))
            return true;
    return false;
}

void network_find_wanted(const remat_network *network, bool *wanted)
{
    for (size_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        wanted[n] = network_layer_is_trained(&layer->node) || layer->node.loss;
        for (uint32_t i = 0; i < layer->node.input_count; i++)
            if (layer->inputs[i] != NETWORK_LABELS)
                wanted[n] |= wanted[layer->inputs[i]];
    }
}

/* Whether the backward of a layer reads input i. */
static bool reads_back(const layer_node *node, uint32_t i)
{
    uint32_t needs = node->needs[LAYER_INPUT_GRADIENT];
    if (network_layer_is_trained(node))
        needs |= node->needs[LAYER_WEIGHT_GRADIENT];
    return needs & LAYER_NEEDS_INPUT(i);
}

/* From the last layer to the first, because who reads a view reads its input. */
static void find_read(const remat_network *network, bool *read)
{
    for (size_t n = network->layer_count; n-- > 0;) {
        const network_layer *layer = &network->layers[n];
        for (uint32_t i = 0; i < layer->node.input_count; i++)
            if (layer->inputs[i] != NETWORK_LABELS)
                read[layer->inputs[i]] |= layer->node.view ? read[n] : reads_back(&layer->node, i);
    }
}

static remat_status resolve_unread(network_builder *builder, const bool *read, const bool *wanted)
{
    remat_network *network = builder->network;
    for (size_t n = 0; n < network->layer_count; n++) {
        network_layer *layer = &network->layers[n];
        if (!(layer->node.needs[LAYER_INPUT_GRADIENT] & LAYER_NEEDS_OUTPUT) || read[n] || !wanted[n])
            continue;
        layer->node.output_unread = true;
        REMAT_TRY(network_blame(builder, layer, network_resolve(builder, layer)));
    }
    return REMAT_OK;
}

remat_status network_find_unread(network_builder *builder)
{
    const size_t layers = builder->network->layer_count;
    bool *read = remat_alloc_zeroed(builder->context, layers, sizeof *read);
    bool *wanted = remat_alloc_zeroed(builder->context, layers, sizeof *wanted);
    remat_status status = REMAT_NO_MEMORY;
    if (read && wanted) {
        find_read(builder->network, read);
        network_find_wanted(builder->network, wanted);
        status = resolve_unread(builder, read, wanted);
    }
    remat_release(builder->context, read, layers, sizeof *read);
    remat_release(builder->context, wanted, layers, sizeof *wanted);
    return status;
}
