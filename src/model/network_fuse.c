/* Merges a fully_connected that only a cross_entropy reads with it into one layer. So the logits, often the largest
 * tensor of a model, are never held as a whole. */
#include "model/network_builder.h"

#include "base/error.h"
#include "layers/projection_cross_entropy.h"

#include <string.h>

/* Whether `loss` is a cross_entropy that alone reads a fully_connected. */
static bool can_fuse(const network_builder *builder, const network_layer *loss)
{
    if (loss->node.type != &layer_type_cross_entropy)
        return false;
    uint32_t projection = loss->inputs[0];
    return builder->readers[projection] == 1 &&
           builder->network->layers[projection].node.type == &layer_type_fully_connected;
}

/* Takes a layer that nobody reads out of the list. */
static void remove_layer(network_builder *builder, uint32_t gone)
{
    remat_network *network = builder->network;
    size_t behind = network->layer_count - gone - 1;
    memmove(&network->layers[gone], &network->layers[gone + 1], behind * sizeof *network->layers);
    network->layer_count--;
    for (size_t i = gone; i < network->layer_count; i++)
        for (uint32_t j = 0; j < network->layers[i].node.input_count; j++)
            if (network->layers[i].inputs[j] != NETWORK_LABELS && network->layers[i].inputs[j] > gone)
                network->layers[i].inputs[j]--;
}

remat_status network_fuse(network_builder *builder)
{
    remat_network *network = builder->network;
    for (size_t i = 0; i < network->layer_count; i++) {
        network_layer *loss = &network->layers[i];
        if (!can_fuse(builder, loss))
            continue;
        uint32_t gone = loss->inputs[0];
        const network_layer *projection = &network->layers[gone];
        projection_options *options = text_pool_take(builder->pool, 1, sizeof *options);
        if (!options)
            return REMAT_NO_MEMORY;
        options->linear = *(const fully_connected_options *)projection->node.options;
        options->loss = *(const cross_entropy_options *)loss->node.options;
        loss->node.type = &layer_type_projection_cross_entropy;
        loss->node.name = projection->node.name;
        loss->node.frozen = projection->node.frozen;
        loss->node.options = options;
        loss->node.inputs[0] = projection->node.inputs[0];
        loss->inputs[0] = projection->inputs[0];
        loss->described = projection->described;
        remove_layer(builder, gone);
        network_count_readers(builder);
        i--;
        REMAT_TRY(network_blame(builder, &network->layers[i], network_resolve(builder, &network->layers[i])));
    }
    return REMAT_OK;
}
