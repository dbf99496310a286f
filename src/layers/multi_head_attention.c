/* multi_head_attention: self-attention of a sequence 1:steps:width, made of three layers:
 *
 *     x --> NAME.qkv (width to 3 * width) --> NAME.core (softmax(q k^T) v) --> NAME.out (width to width)
 *
 * so that a plan can drop and recompute each part on its own. */
#include "layers/attention_core.h"
#include "layers/fully_connected.h"
#include "layers/layer_resolve.h"

typedef struct multi_head_attention_options {
    uint64_t num_heads;
    bool causal, bias;
    initializer start;
} multi_head_attention_options;

static const property properties[] = {
    {"num_heads", PROPERTY_COUNT, offsetof(multi_head_attention_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"causal", PROPERTY_FLAG, offsetof(multi_head_attention_options, causal), "false", 0, 0, NULL,
     "whether a step sees only itself and those before it"},
    {"bias", PROPERTY_FLAG, offsetof(multi_head_attention_options, bias), "true", 0, 0, NULL,
     "whether the projections add a bias"},
    INITIALIZER_PROPERTIES(multi_head_attention_options, start),
    {0},
};

static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    const multi_head_attention_options *options = layer->options;
    fully_connected_options projection = {.multiple = 3, .bias = options->bias, .start = options->start};
    const attention_core_options core = {options->num_heads, options->causal};
    REMAT_TRY(parts->add(parts, &layer_type_fully_connected, "qkv", (int[]){-1}, 1, &projection));
    REMAT_TRY(parts->add(parts, &layer_type_attention_core, "core", (int[]){0}, 1, &core));
    projection.multiple = 1;
    return parts->add(parts, &layer_type_fully_connected, "out", (int[]){1}, 1, &projection);
}

const layer_type layer_type_multi_head_attention = {
    .name = "multi_head_attention",
    .summary = "self-attention with its projections",
    .hint = REMAT_ATTENTION,
    .options_bytes = sizeof(multi_head_attention_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .expand = expand,
};
