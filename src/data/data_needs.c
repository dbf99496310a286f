/* Describes what a network reads, for the data loader. */
#include "data/data_needs.h"

/* Numbers of tokens must be rows of every table that reads them; 0 where none does. */
static uint64_t token_bound(const remat_network *network, uint32_t input)
{
    uint64_t bound = 0;
    for (size_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        for (uint32_t i = 0; i < layer->node.input_count; i++)
            if (layer->inputs[i] == input && layer->node.input_dtypes[i] == REMAT_INT32) {
                uint64_t rows = layer->node.parameters[0].dims[0];
                bound = bound && bound < rows ? bound : rows;
            }
    }
    return bound;
}

static uint64_t class_count(const remat_network *network)
{
    const layer_node *loss = &network->layers[network->layer_count - 1].node;
    return loss->parameter_count ? loss->parameters[0].dims[0] : loss->inputs[0].w;
}

data_needs network_data_needs(const remat_network *network)
{
    data_needs needs = {0};
    for (uint32_t n = 0; n < network->layer_count; n++) {
        const layer_node *node = &network->layers[n].node;
        if (node->input_count != 0 || needs.input_count == LAYER_MAX_INPUTS)
            continue;
        uint64_t bound = token_bound(network, n);
        needs.inputs[needs.input_count++] = (data_field){
            layer_values(node->output), node->dtype, bound, false, {node->output.c, node->output.h, node->output.w}};
    }
    if (network->has_labels)
        needs.labels = (data_field){layer_values(network->labels),
                                    network->labels_dtype,
                                    network->labels_dtype == REMAT_INT32 ? class_count(network) : 0,
                                    true,
                                    {0}};
    return needs;
}
