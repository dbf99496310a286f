/* multi_head_attention: self-attention of a sequence 1:steps:width, made of three layers:
 *
 *     x --> NAME.qkv (width to 3 * width) --> NAME.core (softmax(q k^T) v) --> NAME.out (width to width)
 *
 * so that a plan can drop and recompute each part on its own. With two inputs it is cross-attention: the steps of the first
 * look at those of the second, the memory, which may have another width:
 *
 *     x ------> NAME.q (width to width) -----------------> NAME.core --> NAME.out
 *     memory -> NAME.kv (its width to 2 * width) ------------^                     */
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
    const attention_core_options core = {.num_heads = options->num_heads, .causal = options->causal};
    if (layer->input_count < 2) {
        REMAT_TRY(parts->add(parts, &layer_type_fully_connected, "qkv", (int[]){-1}, 1, &projection));
        REMAT_TRY(parts->add(parts, &layer_type_attention_core, "core", (int[]){0}, 1, &core));
        projection.multiple = 1;
        return parts->add(parts, &layer_type_fully_connected, "out", (int[]){1}, 1, &projection);
    }
    projection.multiple = 1;
    REMAT_TRY(parts->add(parts, &layer_type_fully_connected, "q", (int[]){-1}, 1, &projection));
    fully_connected_options memory = {.unit = layer_flops(layer->inputs[0].w, 2, 1), .bias = options->bias};
    memory.start = options->start;
    REMAT_TRY(parts->add(parts, &layer_type_fully_connected, "kv", (int[]){-2}, 1, &memory));
    REMAT_TRY(parts->add(parts, &layer_type_attention_core, "core", (int[]){0, 1}, 2, &core));
    return parts->add(parts, &layer_type_fully_connected, "out", (int[]){2}, 1, &projection);
}

const layer_type layer_type_multi_head_attention = {
    .name = "multi_head_attention",
    .summary = "attention of a sequence to itself, or to a second one, with its projections",
    .hint = REMAT_ATTENTION,
    .options_bytes = sizeof(multi_head_attention_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 2,
    .expand = expand,
};
