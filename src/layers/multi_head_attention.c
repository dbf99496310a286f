/* multi_head_attention: self-attention of a sequence 1:steps:width, made of three layers:
 *
 *     x --> NAME.qkv (width to 3 * width) --> NAME.core (softmax(q k^T) v) --> NAME.out (width to width)
 *
 * so that a plan can drop and recompute each part on its own. */
#include "layers/initializer.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct multi_head_attention_options {
    uint64_t num_heads;
    bool causal, bias;
    initializer start;
} multi_head_attention_options;

static const layer_property properties[] = {
    {"num_heads", LAYER_COUNT, offsetof(multi_head_attention_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"causal", LAYER_FLAG, offsetof(multi_head_attention_options, causal), "false", 0, 0, NULL,
     "whether a step sees only itself and those before it"},
    {"bias", LAYER_FLAG, offsetof(multi_head_attention_options, bias), "true", 0, 0, NULL,
     "whether the projections add a bias"},
    INITIALIZER_PROPERTIES(multi_head_attention_options, start),
    {0},
};

static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    const multi_head_attention_options *options = layer->options;
    char heads[40], start[64], scale[64];
    snprintf(heads, sizeof heads, "num_heads=%" PRIu64, options->num_heads);
    initializer_write(&options->start, start, sizeof start, scale, sizeof scale);
    const char *bias = options->bias ? "bias=true" : "bias=false";
    const char *qkv[] = {"multiple=3", bias, start, scale};
    const char *core[] = {heads, options->causal ? "causal=true" : "causal=false"};
    const char *out[] = {"multiple=1", bias, start, scale};
    REMAT_TRY(parts->add(parts, "fully_connected", "qkv", (int[]){-1}, 1, qkv, 4));
    REMAT_TRY(parts->add(parts, "attention_core", "core", (int[]){0}, 1, core, 2));
    return parts->add(parts, "fully_connected", "out", (int[]){1}, 1, out, 4);
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
