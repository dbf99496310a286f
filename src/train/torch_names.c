#include "train/torch_names.h"

#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether a part of a layer is attention itself: then the layer is multi_head_attention. */
static bool is_attention(const remat_network *network, uint32_t layer)
{
    const uint32_t described = network->layers[layer].described;
    size_t first = layer;
    while (first > 0 && network->layers[first - 1].described == described)
        first--;
    for (size_t i = first; i < network->layer_count && network->layers[i].described == described; i++)
        if (strcmp(network->layers[i].node.type->name, "attention_core") == 0)
            return strcmp(network->layers[i].node.name, network->layers[layer].node.name) != 0;
    return false;
}

/* The part of attention that a parameter belongs to: ".qkv", ".q", ".kv", ".out"; NULL: none. */
static const char *attention_part(const remat_network *network, size_t parameter)
{
    static const char *const parts[] = {".qkv", ".kv", ".q", ".out"};
    const uint32_t layer = network->parameters[parameter].layer;
    const char *name = network->layers[layer].node.name;
    for (size_t i = 0; i < 4; i++)
        if (ends_with(name, parts[i]) && is_attention(network, layer))
            return parts[i];
    return NULL;
}

bool torch_names_is_cross(const remat_network *network, size_t parameter)
{
    const char *part = attention_part(network, parameter);
    return part && (strcmp(part, ".q") == 0 || strcmp(part, ".kv") == 0);
}

void torch_names_layer(const remat_network *network, size_t parameter, char layer[WEIGHT_NAME_TEXT])
{
    const char *name = network->layers[network->parameters[parameter].layer].node.name;
    const char *part = attention_part(network, parameter);
    const int length = (int)(strlen(name) - (part ? strlen(part) : 0));
    snprintf(layer, WEIGHT_NAME_TEXT, "%.*s", length, name);
}

/* Names of parameters that differ. */
static const char *leaf_of(const layer_node *node, const char *name)
{
    static const struct {
        const char *type, *ours, *theirs; /* types end like this */
    } leaves[] = {
        {"normalization", "gain", "weight"},
        {"normalization", "shift", "bias"},
        {"normalization", "running_variance", "running_var"},
        {"lstm", "weight_ih", "weight_ih_l0"},
        {"lstm", "weight_hh", "weight_hh_l0"},
        {"lstm", "bias_ih", "bias_ih_l0"},
        {"lstm", "bias_hh", "bias_hh_l0"},
        {"gru", "weight_ih", "weight_ih_l0"},
        {"gru", "weight_hh", "weight_hh_l0"},
        {"gru", "bias_ih", "bias_ih_l0"},
        {"gru", "bias_hh", "bias_hh_l0"},
    };
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
        if (ends_with(node->type->name, leaves[i].type) && strcmp(name, leaves[i].ours) == 0)
            return leaves[i].theirs;
    return name;
}

static void set(torch_part *part, const char *prefix, const char *name, uint64_t first, uint64_t rows)
{
    snprintf(part->name, sizeof part->name, "%s.%s", prefix, name);
    part->first_row = first;
    part->rows = rows;
}

/* Rows are those of our parameter, of which q has one share and k and v have two. */
static size_t write_cross(const network_parameter *about, const char *prefix, bool is_q, bool packed,
                          torch_part parts[2])
{
    const bool weight = strcmp(about->about.name, "weight") == 0;
    const uint64_t rows = about->about.dims[0];
    if (packed || !weight) {
        set(&parts[0], prefix, weight ? "in_proj_weight" : "in_proj_bias", is_q ? 0 : rows / 2, rows);
        return 1;
    }
    set(&parts[0], prefix, is_q ? "q_proj_weight" : "k_proj_weight", 0, 0);
    if (is_q)
        return 1;
    set(&parts[1], prefix, "v_proj_weight", 0, 0);
    return 2;
}

size_t torch_names_write(const remat_network *network, size_t parameter, const char *prefix, bool packed,
                         torch_part parts[2])
{
    const network_parameter *about = &network->parameters[parameter];
    const char *part = attention_part(network, parameter), *name = about->about.name;
    if (!part)
        set(&parts[0], prefix, leaf_of(&network->layers[about->layer].node, name), 0, 0);
    else if (strcmp(part, ".out") == 0)
        set(&parts[0], prefix, strcmp(name, "weight") == 0 ? "out_proj.weight" : "out_proj.bias", 0, 0);
    else if (strcmp(part, ".qkv") == 0)
        set(&parts[0], prefix, strcmp(name, "weight") == 0 ? "in_proj_weight" : "in_proj_bias", 0, 0);
    else
        return write_cross(about, prefix, strcmp(part, ".q") == 0, packed, parts);
    return 1;
}
