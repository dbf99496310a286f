/* Numbers the parameters. A layer that shares the weight of another layer has the same number. */
#include "model/network_builder.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

#include <string.h>

enum { MOST_PARAMETERS = 16 * MODEL_MOST_LAYERS };
static const uint64_t MOST_BYTES = REMAT_LIMIT / 16; /* weights, moments and gradients together stay below 2^63 */

typedef struct numbering {
    network_builder *builder;
    size_t capacity;
    uint32_t *first_layers; /* for each described layer its first in the network, NETWORK_NONE where it has none yet */
} numbering;

static remat_status add_parameter(numbering *numbers, uint32_t layer, const layer_parameter *about, uint32_t *number)
{
    network_builder *builder = numbers->builder;
    remat_network *network = builder->network;
    const layer_node *node = &network->layers[layer].node;
    network_parameter parameter = {.about = *about, .values = 1, .layer = layer};
    bool fits = true;
    for (uint32_t i = 0; i < about->rank; i++)
        fits = fits && remat_multiply(parameter.values, about->dims[i], &parameter.values);
    fits = fits && dtype_bytes_checked(about->dtype, parameter.values, &parameter.bytes);
    uint64_t placed = parameter.bytes;
    fits = fits && remat_add(&placed, 63) && remat_add(&network->parameter_bytes, placed & ~(uint64_t)63) &&
           network->parameter_bytes < MOST_BYTES;
    if (!fits || network->parameter_count == MOST_PARAMETERS)
        return remat_fail(builder->context, REMAT_INVALID, NULL, "%s: too large, or too many parameters", about->name);
    parameter.name = text_pool_join(builder->pool, (const char *const[]){node->name, ".", about->name, NULL});
    if (!parameter.name)
        return REMAT_NO_MEMORY;
    void *parameters = network->parameters;
    REMAT_TRY(
        remat_grow(builder->context, &parameters, &numbers->capacity, network->parameter_count + 1, sizeof parameter));
    network->parameters = parameters;
    network->parameters[network->parameter_count] = parameter;
    *number = (uint32_t)network->parameter_count++;
    return REMAT_OK;
}

/* The number of the weight of the layer called `name`: that of its first part that has one. */
static remat_status find_weight(const numbering *numbers, const char *name, uint32_t reader, uint32_t *number)
{
    const network_builder *builder = numbers->builder;
    const remat_network *network = builder->network;
    uint32_t described = model_names_find(&builder->model->layer_names, name);
    if (described == MODEL_NAME_NONE) {
        const char *nearest = model_names_nearest(&builder->model->layer_names, name);
        return remat_fail(builder->context, REMAT_INVALID, NULL, "shared_from: there is no layer '%.80s'%s%s%s", name,
                          nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    }
    uint32_t first = numbers->first_layers[described];
    if (first == NETWORK_NONE || described == network->layers[reader].described)
        return remat_fail(builder->context, REMAT_INVALID, NULL,
                          "shared_from: '%s' does not stand before it; share the weight of an earlier layer", name);
    for (uint32_t i = first; i < reader && network->layers[i].described == described; i++)
        for (uint32_t j = 0; j < network->layers[i].node.parameter_count; j++)
            if (strcmp(network->layers[i].node.parameters[j].name, "weight") == 0) {
                *number = network->layers[i].parameters[j];
                return REMAT_OK;
            }
    return remat_fail(builder->context, REMAT_INVALID, NULL, "shared_from: '%s', of type %s, has no weight", name,
                      builder->model->layers[described].type->name);
}

static void write_dims(const layer_parameter *about, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < about->rank && used < room; i++)
        used +=
            (size_t)snprintf(text + used, room - used, "%s%llu", i ? " x " : "", (unsigned long long)about->dims[i]);
}

static remat_status share(const numbering *numbers, const char *name, uint32_t layer, layer_parameter *about,
                          uint32_t *number)
{
    const network_builder *builder = numbers->builder;
    REMAT_TRY(find_weight(numbers, name, layer, number));
    const layer_parameter *other = &builder->network->parameters[*number].about;
    if (other->frozen != about->frozen)
        return remat_fail(builder->context, REMAT_INVALID, NULL,
                          "shared_from: it is %s, but '%s', whose weight it shares, is %s; freeze both or neither",
                          about->frozen ? "frozen" : "trained", name, other->frozen ? "frozen" : "trained");
    about->dtype = other->dtype;
    if (other->rank == about->rank && memcmp(other->dims, about->dims, about->rank * sizeof *about->dims) == 0)
        return REMAT_OK;
    char ours[128], theirs[128];
    write_dims(about, ours, sizeof ours);
    write_dims(other, theirs, sizeof theirs);
    return remat_fail(builder->context, REMAT_INVALID, NULL, "shared_from: its weight is %s, that of '%s' is %s", ours,
                      name, theirs);
}

/* In a folder in Hugging Face's layout, normalizations have a weight and a bias, and people look for these names there. */
static const char *name_in_folder(const layer_node *node, const char *name)
{
    const char *type = strstr(node->type->name, "normalization");
    return !type ? name : strcmp(name, "gain") == 0 ? "weight" : strcmp(name, "shift") == 0 ? "bias" : name;
}

static remat_status number_layer(numbering *numbers, uint32_t position)
{
    network_layer *layer = &numbers->builder->network->layers[position];
    const char *shared = layer->node.shared_from;
    if (numbers->first_layers[layer->described] == NETWORK_NONE)
        numbers->first_layers[layer->described] = position;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        layer_parameter *about = &layer->node.parameters[i];
        if (numbers->builder->model->folder)
            about->name = name_in_folder(&layer->node, about->name);
        if (shared && strcmp(about->name, "weight") == 0)
            REMAT_TRY(share(numbers, shared, position, about, &layer->parameters[i]));
        else
            REMAT_TRY(add_parameter(numbers, position, about, &layer->parameters[i]));
    }
    return REMAT_OK;
}

/* Frozen parameters are behind the others. They have no gradient. */
static void place_parameters(remat_network *network)
{
    uint64_t offset = 0;
    for (int frozen = 0; frozen < 2; frozen++)
        for (size_t p = 0; p < network->parameter_count; p++) {
            network_parameter *parameter = &network->parameters[p];
            if (parameter->about.frozen != frozen)
                continue;
            parameter->offset = offset;
            offset += (parameter->bytes + 63) & ~(uint64_t)63;
            parameter->gradient_offset = network->gradient_bytes;
            if (!frozen)
                network->gradient_bytes +=
                    (dtype_bytes(layer_gradient_dtype(&parameter->about), parameter->values) + 63) & ~(uint64_t)63;
        }
}

/* A training that changes nothing is a mistake. */
static remat_status check_trained(const network_builder *builder)
{
    const remat_network *network = builder->network;
    bool frozen = false;
    for (size_t p = 0; p < network->parameter_count; p++) {
        if (layer_parameter_is_trained(&network->parameters[p].about))
            return REMAT_OK;
        frozen |= network->parameters[p].about.frozen;
    }
    if (!frozen || network->options.purpose != NETWORK_TRAINING)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = builder->model->file;
    return remat_fail(builder->context, place.file ? REMAT_BAD_INPUT : REMAT_INVALID, &place,
                      "every layer with parameters has trainable=false: there is nothing to train");
}

remat_status network_number_parameters(network_builder *builder)
{
    remat_network *network = builder->network;
    size_t described = builder->model->layer_count;
    numbering numbers = {.builder = builder};
    numbers.first_layers = remat_alloc(builder->context, described, sizeof *numbers.first_layers);
    if (!numbers.first_layers)
        return REMAT_NO_MEMORY;
    memset(numbers.first_layers, 0xff, described * sizeof *numbers.first_layers);
    remat_status status = REMAT_OK;
    for (uint32_t i = 0; i < network->layer_count && status == REMAT_OK; i++)
        status = network_blame(builder, &network->layers[i], number_layer(&numbers, i));
    if (status == REMAT_OK)
        status = remat_fit(builder->context, (void **)&network->parameters, &numbers.capacity, network->parameter_count,
                           sizeof *network->parameters);
    if (status != REMAT_OK) {
        remat_release(builder->context, network->parameters, numbers.capacity, sizeof *network->parameters);
        network->parameters = NULL;
        network->parameter_count = 0;
    }
    remat_release(builder->context, numbers.first_layers, described, sizeof *numbers.first_layers);
    if (status != REMAT_OK)
        return status;
    place_parameters(network);
    return check_trained(builder);
}
