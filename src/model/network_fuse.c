/* A fully_connected that only a cross_entropy reads becomes one layer with it: the logits, often the largest tensor of
 * all, never exist as a whole. */
#include "model/network_builder.h"

#include "base/error.h"

#include <string.h>

static bool known_to(const layer_type *type, const network_draft *draft)
{
    for (size_t i = 0; i < draft->property_count; i++) {
        bool known = false;
        for (const layer_property *property = type->properties; property && property->key; property++)
            known = known || strcmp(property->key, draft->properties[i].key) == 0;
        if (!known)
            return false;
    }
    return true;
}

/* Whether `loss` is a cross_entropy that alone reads a fully_connected, and nothing that was said gets lost. */
static bool fusible(const network_builder *builder, const layer_type *fused, size_t loss)
{
    const remat_network *network = builder->network;
    if (strcmp(network->layers[loss].node.type->name, "cross_entropy") != 0)
        return false;
    uint32_t projection = network->layers[loss].inputs[0];
    return strcmp(network->layers[projection].node.type->name, "fully_connected") == 0 &&
           builder->readers[projection] == 1 && known_to(fused, &builder->drafts[projection]) &&
           known_to(fused, &builder->drafts[loss]);
}

/* The properties of both, with the projection's first. */
static remat_status join_drafts(network_builder *builder, const network_draft *a, const network_draft *b,
                                network_draft *joined)
{
    ini_entry *properties = text_pool_take(builder->pool, a->property_count + b->property_count, sizeof *properties);
    if (!properties)
        return REMAT_NO_MEMORY;
    if (a->property_count)
        memcpy(properties, a->properties, a->property_count * sizeof *properties);
    if (b->property_count)
        memcpy(properties + a->property_count, b->properties, b->property_count * sizeof *properties);
    *joined = (network_draft){properties, a->property_count + b->property_count};
    return REMAT_OK;
}

/* Takes a layer that nobody reads out of the list. */
static void remove_layer(network_builder *builder, uint32_t gone)
{
    remat_network *network = builder->network;
    size_t behind = network->layer_count - gone - 1;
    memmove(&network->layers[gone], &network->layers[gone + 1], behind * sizeof *network->layers);
    memmove(&builder->drafts[gone], &builder->drafts[gone + 1], behind * sizeof *builder->drafts);
    network->layer_count--;
    for (size_t i = gone; i < network->layer_count; i++)
        for (uint32_t j = 0; j < network->layers[i].node.input_count; j++)
            if (network->layers[i].inputs[j] != NETWORK_LABELS && network->layers[i].inputs[j] > gone)
                network->layers[i].inputs[j]--;
}

remat_status network_fuse(network_builder *builder)
{
    remat_network *network = builder->network;
    const layer_type *fused = layer_type_find("projection_cross_entropy");
    for (size_t i = 0; fused && i < network->layer_count; i++) {
        if (!fusible(builder, fused, i))
            continue;
        network_layer *loss = &network->layers[i];
        uint32_t gone = loss->inputs[0];
        const network_layer *projection = &network->layers[gone];
        REMAT_TRY(join_drafts(builder, &builder->drafts[gone], &builder->drafts[i], &builder->drafts[i]));
        REMAT_TRY(network_make_options(builder, fused, builder->drafts[i].properties, builder->drafts[i].property_count,
                                       &loss->node.options));
        loss->node.type = fused;
        loss->node.name = projection->node.name;
        loss->node.inputs[0] = projection->node.inputs[0];
        loss->inputs[0] = projection->inputs[0];
        loss->described = projection->described;
        remove_layer(builder, gone);
        network_count_readers(builder);
        REMAT_TRY(
            network_blame(builder, &network->layers[i - 1], network_resolve(builder, &network->layers[i - 1].node)));
        i--;
    }
    return REMAT_OK;
}
