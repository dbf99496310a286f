/* From described layers to the layers of a network: inputs by name become numbers, composite types their parts. */
#include "model/network_builder.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/weight_blocks.h"
#include "layers/layer_resolve.h"

#include <string.h>

enum { DEEPEST = 8, MOST_PARTS = 64 };

/* A layer to be made. */
typedef struct wanted_layer {
    const layer_type *type;
    const char *name;
    const void *options;
    const uint32_t *inputs; /* network layers */
    size_t input_count;
} wanted_layer;

static remat_status add_layer(network_builder *builder, const wanted_layer *wanted, uint32_t *output);

/* ---- one layer ---- */

/* A copy in the pool; NULL for nothing, or with REMAT_NO_MEMORY on the context. */
static void *pool_copy(network_builder *builder, const void *list, size_t count, size_t size)
{
    void *copy = count ? text_pool_take(builder->pool, count, size) : NULL;
    if (copy)
        memcpy(copy, list, count * size);
    return copy;
}

/* Moves the lists of a resolved layer from where they are into the pool. */
static remat_status keep_lists(network_builder *builder, network_layer *layer)
{
    layer_node *node = &layer->node;
    size_t inputs = node->input_count, parameters = node->parameter_count, saved = node->saved_count;
    layer->inputs = pool_copy(builder, layer->inputs, inputs, sizeof *layer->inputs);
    node->inputs = pool_copy(builder, node->inputs, inputs, sizeof *node->inputs);
    node->input_dtypes = pool_copy(builder, node->input_dtypes, inputs, sizeof *node->input_dtypes);
    node->parameters = pool_copy(builder, node->parameters, parameters, sizeof *node->parameters);
    node->saved = pool_copy(builder, node->saved, saved, sizeof *node->saved);
    layer->parameters = parameters ? text_pool_take(builder->pool, parameters, sizeof *layer->parameters) : NULL;
    bool has_inputs = layer->inputs && node->inputs && node->input_dtypes;
    bool has_parameters = node->parameters && layer->parameters;
    return (has_inputs || !inputs) && (has_parameters || !parameters) && (node->saved || !saved) ? REMAT_OK
                                                                                                 : REMAT_NO_MEMORY;
}

/* In a network of bf16: what comes in, losses, and layers that say so are in fp32. */
static remat_dtype dtype_of(const network_builder *builder, const network_layer *layer)
{
    const remat_dtype dtype = builder->network->options.dtype;
    const layer_type *type = layer->node.type;
    const bool is_full = type->max_inputs == 0 || type->labels != LAYER_NO_LABELS || type->fp32_output ||
                         builder->model->layers[layer->described].fp32;
    return is_full ? dtype_traits_of(dtype)->accumulator : dtype;
}

/* Matrices of a network in bf16 without master copies. Vectors are small, and statistics and functions of the user need fp32. */
static bool is_stored_in_bf16(const network_builder *builder, const network_layer *layer,
                              const layer_parameter *parameter)
{
    return builder->network->options.dtype == REMAT_BF16 && !builder->model->settings.master &&
           !builder->model->layers[layer->described].fp32 && !layer->node.type->fp32_inputs && parameter->rank > 1 &&
           !parameter->statistic;
}

/* A model that only runs, and says nothing about what is trained, is frozen as a whole. */
static bool is_held_frozen(const network_builder *builder, const layer_parameter *parameter)
{
    const model_settings *settings = &builder->model->settings;
    const bool says = settings->lora || settings->train || settings->adapter;
    return parameter->frozen || (builder->network->options.purpose != NETWORK_TRAINING && !says);
}

remat_status network_resolve(network_builder *builder, network_layer *layer)
{
    layer_node *node = &layer->node;
    layer_node fresh = {.type = node->type,
                        .name = node->name,
                        .options = node->options,
                        .device = builder->network->options.device,
                        .dtype = dtype_of(builder, layer),
                        .halves = builder->network->options.dtype == REMAT_BF16,
                        .half_weights =
                            builder->network->options.dtype == REMAT_BF16 && !builder->model->settings.master,
                        .batch = node->batch,
                        .frozen = node->frozen,
                        .output_unread = node->output_unread,
                        .input_count = node->input_count};
    layer_node_use(&fresh, &builder->room);
    for (uint32_t i = 0; i < node->input_count; i++)
        fresh.inputs[i] = node->inputs[i];
    *node = fresh;
    REMAT_TRY(node->type->resolve(builder->context, node));
    if (builder->network->options.length && node->input_count == 0)
        REMAT_TRY(layer_set_output(builder->context, node,
                                   (layer_shape){node->output.c, node->output.h, builder->network->options.length}));
    for (int pass = 0; pass < LAYER_PASSES; pass++)
        if (node->workspace[pass] >= REMAT_LIMIT)
            return remat_fail(builder->context, REMAT_INVALID, NULL,
                              "%s: its workspace is too large; it must stay below 2^63 bytes", node->type->name);
    REMAT_TRY(layer_check_size(builder->context, node, node->output, node->batch));
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        layer_parameter *parameter = &node->parameters[p];
        const remat_dtype frozen_dtype = model_frozen_dtype(builder->model);
        parameter->frozen |= node->frozen;
        if (is_stored_in_bf16(builder, layer, parameter))
            parameter->dtype = REMAT_BF16;
        if (frozen_dtype != REMAT_FP32 && is_held_frozen(builder, parameter) && parameter->compressible &&
            parameter->dims[1] % WEIGHT_BLOCK == 0)
            parameter->dtype = frozen_dtype;
    }
    return keep_lists(builder, layer);
}

/* The labels as input 1 of a loss. */
static remat_status add_labels(network_builder *builder, network_layer *layer, layer_labels kind)
{
    remat_network *network = builder->network;
    if (network->has_labels)
        return remat_fail(builder->context, REMAT_INVALID, NULL, "a model that is trained has exactly one loss");
    layer_shape prediction = layer->node.inputs[0], labels = prediction;
    if (kind == LAYER_LABELS_CLASSES) {
        labels = (layer_shape){1, 1, 0};
        if (!remat_multiply(prediction.c, prediction.h, &labels.w))
            return remat_fail(builder->context, REMAT_INVALID, NULL, "too many labels");
    }
    layer->inputs[1] = NETWORK_LABELS;
    layer->node.inputs[1] = labels;
    layer->node.input_count = 2;
    network->has_labels = true;
    network->labels_dtype =
        kind == LAYER_LABELS_CLASSES ? REMAT_INT32 : dtype_traits_of(network->options.dtype)->accumulator;
    network->labels = labels;
    return REMAT_OK;
}

static remat_status append(network_builder *builder, const network_layer *layer)
{
    remat_network *network = builder->network;
    void *layers = network->layers;
    if (network->layer_count == 16 * (size_t)MODEL_MOST_LAYERS)
        return remat_fail(builder->context, REMAT_INVALID, NULL, "too many layers");
    REMAT_TRY(remat_grow(builder->context, &layers, &builder->layer_capacity, network->layer_count + 1, sizeof *layer));
    network->layers = layers;
    network->layers[network->layer_count++] = *layer;
    return REMAT_OK;
}

static remat_status check_input_count(const network_builder *builder, const wanted_layer *wanted)
{
    /* The labels of a loss are no input that a model can name. */
    bool loss = wanted->type->labels != LAYER_NO_LABELS;
    size_t least = loss ? 1 : wanted->type->min_inputs, most = loss ? 1 : wanted->type->max_inputs;
    if (most > LAYER_MAX_INPUTS)
        most = LAYER_MAX_INPUTS;
    if (wanted->input_count >= least && wanted->input_count <= most)
        return REMAT_OK;
    if (least == most)
        return remat_fail(builder->context, REMAT_INVALID, NULL, "%s reads exactly %zu layer%s, not %zu",
                          wanted->type->name, least, least == 1 ? "" : "s", wanted->input_count);
    return remat_fail(builder->context, REMAT_INVALID, NULL, "%s reads %zu to %zu layers, not %zu", wanted->type->name,
                      least, most, wanted->input_count);
}

/* ---- parts of a composite ---- */

typedef struct part_list {
    layer_parts calls; /* first, so that a layer_parts is a part_list */
    network_builder *builder;
    const wanted_layer *whole;
    uint32_t outputs[MOST_PARTS];
    int count;
} part_list;

static remat_status name_part(const part_list *list, const char *suffix, const char **name)
{
    network_builder *builder = list->builder;
    *name = list->whole->name;
    if (!suffix || !*suffix)
        return REMAT_OK;
    *name = text_pool_join(builder->pool, (const char *const[]){list->whole->name, ".", suffix, NULL});
    if (!*name)
        return REMAT_NO_MEMORY;
    if (model_names_find(&builder->model->layer_names, *name) != MODEL_NAME_NONE)
        return remat_fail(builder->context, REMAT_INVALID, NULL,
                          "its part '%s' has the name of another layer; rename that one", *name);
    return REMAT_OK;
}

static remat_status add_part(layer_parts *parts, const layer_type *type, const char *suffix, const int *inputs,
                             size_t input_count, const void *options)
{
    part_list *list = (part_list *)parts;
    network_builder *builder = list->builder;
    uint32_t numbers[LAYER_MAX_INPUTS];
    const wanted_layer *whole = list->whole;
    void *copy = text_pool_take(builder->pool, 1, type->options_bytes);
    wanted_layer part = {.type = type, .options = copy, .inputs = numbers, .input_count = input_count};
    if (!copy)
        return REMAT_NO_MEMORY;
    memcpy(copy, options, type->options_bytes);
    if (list->count == MOST_PARTS || input_count > LAYER_MAX_INPUTS)
        return remat_fail(builder->context, REMAT_INTERNAL, NULL, "%s cannot be made of a '%s'", whole->type->name,
                          type->name);
    for (size_t i = 0; i < input_count; i++) {
        int from = inputs[i];
        if (from >= list->count || (from < 0 && (size_t)(-1 - from) >= whole->input_count))
            return remat_fail(builder->context, REMAT_INTERNAL, NULL, "a part of %s reads what is not there",
                              whole->type->name);
        numbers[i] = from < 0 ? whole->inputs[-1 - from] : list->outputs[from];
    }
    REMAT_TRY(name_part(list, suffix, &part.name));
    remat_status status = add_layer(builder, &part, &list->outputs[list->count]);
    if (status == REMAT_INVALID && part.name != whole->name)
        return remat_fail(builder->context, status, NULL, "part '%s': %s", part.name,
                          remat_context_message(builder->context));
    list->count++;
    return status;
}

/* *output stays NETWORK_NONE where the type stands for itself. */
static remat_status expand(network_builder *builder, const wanted_layer *wanted, const layer_node *node,
                           uint32_t *output)
{
    *output = NETWORK_NONE;
    if (!wanted->type->expand)
        return REMAT_OK;
    if (builder->depth == DEEPEST)
        return remat_fail(builder->context, REMAT_INTERNAL, NULL, "%s is made of itself", wanted->type->name);
    part_list list = {.calls = {add_part}, .builder = builder, .whole = wanted};
    builder->depth++;
    remat_status status = wanted->type->expand(builder->context, node, &list.calls);
    builder->depth--;
    if (status == REMAT_OK && list.count)
        *output = list.outputs[list.count - 1];
    return status;
}

/* ---- what is trained ---- */

typedef struct tuned_layer {
    bool adapted; /* it gets an adapter, and comes again as one */
    bool frozen;
} tuned_layer;

static void note_match(const pattern_list *patterns, const char *name, uint64_t *matched)
{
    const char *const *found = tuning_find(patterns, name);
    if (found && found - patterns->items < 64)
        *matched |= (uint64_t)1 << (found - patterns->items);
}

/* A fully_connected with an activation comes again without it. */
static tuned_layer tune(network_builder *builder, const wanted_layer *wanted)
{
    const model_tuning *tuning = &builder->model->tuning;
    const bool described = builder->model->layers[builder->described].frozen;
    const fully_connected_options *options = wanted->options;
    const bool linear = wanted->type == &layer_type_fully_connected && options->activation == ACTIVATION_NONE;
    note_match(&tuning->trained, wanted->name, &builder->trained);
    if (wanted->type == &layer_type_lora)
        return (tuned_layer){false, described};
    if (linear)
        note_match(&tuning->targets, wanted->name, &builder->targets);
    if (linear && !described && tuning_is_target(tuning, wanted->name))
        return (tuned_layer){true, false};
    return (tuned_layer){false, described || tuning_freezes(tuning, wanted->name)};
}

static const void *adapter_options(network_builder *builder, const fully_connected_options *linear)
{
    const model_tuning *tuning = &builder->model->tuning;
    const lora_options options = {*linear, tuning->rank, tuning->alpha, tuning->dropout};
    return pool_copy(builder, &options, 1, sizeof options);
}

static remat_status add_layer(network_builder *builder, const wanted_layer *wanted, uint32_t *output)
{
    remat_network *network = builder->network;
    const layer_type *type = wanted->type;
    REMAT_TRY(check_input_count(builder, wanted));
    const tuned_layer tuned = tune(builder, wanted);
    if (tuned.adapted) {
        const wanted_layer *plain = wanted;
        wanted_layer adapted = *plain;
        adapted.type = &layer_type_lora;
        if (!(adapted.options = adapter_options(builder, plain->options)))
            return REMAT_NO_MEMORY;
        return add_layer(builder, &adapted, output);
    }
    uint32_t inputs[LAYER_MAX_INPUTS];
    layer_room room;
    network_layer layer = {.inputs = inputs,
                           .joined = NETWORK_NONE,
                           .block = builder->model->layers[builder->described].block,
                           .described = builder->described};
    layer.node = (layer_node){.type = type,
                              .name = wanted->name,
                              .options = wanted->options,
                              .batch = network->batch,
                              .frozen = tuned.frozen};
    layer_node_use(&layer.node, &room);
    layer.node.input_count = (uint32_t)wanted->input_count;
    for (size_t i = 0; i < wanted->input_count; i++) {
        layer.inputs[i] = wanted->inputs[i];
        layer.node.inputs[i] = network->layers[wanted->inputs[i]].node.output;
    }
    REMAT_TRY(expand(builder, wanted, &layer.node, output));
    if (*output != NETWORK_NONE)
        return REMAT_OK;
    if (!type->resolve)
        return remat_fail(builder->context, REMAT_INTERNAL, NULL, "%s stands for nothing", type->name);
    layer_labels labels = type->labels;
    if (labels != LAYER_NO_LABELS)
        REMAT_TRY(add_labels(builder, &layer, labels));
    REMAT_TRY(network_resolve(builder, &layer));
    *output = (uint32_t)network->layer_count;
    return append(builder, &layer);
}

/* ---- described layers ---- */

static remat_status find_input(const network_builder *builder, const char *name, uint32_t *number)
{
    const remat_model *model = builder->model;
    remat_context *context = builder->context;
    uint32_t described = model_names_find(&model->layer_names, name);
    if (described == MODEL_NAME_NONE) {
        const char *nearest = model_names_nearest(&model->layer_names, name);
        if (!*name)
            return remat_fail(context, REMAT_INVALID, NULL, "input_layers: a name is missing between the commas");
        return remat_fail(context, REMAT_INVALID, NULL, "input_layers: there is no layer '%.80s'%s%s%s", name,
                          nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    }
    if (described == builder->described)
        return remat_fail(context, REMAT_INVALID, NULL, "input_layers: it reads itself");
    if (described > builder->described)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "input_layers: '%s' is defined later; a layer reads only layers that stand before it", name);
    if (model->layers[described].type->labels != LAYER_NO_LABELS)
        return remat_fail(context, REMAT_INVALID, NULL, "input_layers: '%s' is a loss, which nobody can read", name);
    *number = builder->outputs[described];
    return REMAT_OK;
}

/* The inputs that the layer names, or the layer before. */
static remat_status find_inputs(const network_builder *builder, const described_layer *layer,
                                uint32_t numbers[LAYER_MAX_INPUTS], size_t *count)
{
    *count = 0;
    if (layer->input_count > LAYER_MAX_INPUTS)
        return remat_fail(builder->context, REMAT_INVALID, NULL, "input_layers: %zu layers; %d is the most",
                          layer->input_count, LAYER_MAX_INPUTS);
    for (; *count < layer->input_count; ++*count)
        REMAT_TRY(find_input(builder, layer->inputs[*count], &numbers[*count]));
    if (layer->inputs || layer->type->max_inputs == 0)
        return REMAT_OK;
    if (builder->described == 0)
        return remat_fail(builder->context, REMAT_INVALID, NULL,
                          "it is the first layer and has nothing to read; begin with a layer of type input");
    const described_layer *before = layer - 1;
    if (before->type->labels != LAYER_NO_LABELS)
        return remat_fail(builder->context, REMAT_INVALID, NULL,
                          "the layer before, '%s', is a loss, which nobody can read; say input_layers", before->name);
    numbers[(*count)++] = builder->outputs[builder->described - 1];
    return REMAT_OK;
}

static remat_status add_described(network_builder *builder, const described_layer *layer, uint64_t *line)
{
    uint32_t numbers[LAYER_MAX_INPUTS];
    wanted_layer wanted = {.type = layer->type, .name = layer->name, .options = layer->options, .inputs = numbers};
    *line = layer->inputs ? layer->inputs_line : layer->line;
    REMAT_TRY(find_inputs(builder, layer, numbers, &wanted.input_count));
    REMAT_TRY(check_input_count(builder, &wanted));
    *line = layer->line;
    uint32_t *output = &builder->outputs[builder->described];
    *output = NETWORK_NONE;
    if (builder->network->options.purpose == NETWORK_INFERENCE && layer->type->labels != LAYER_NO_LABELS)
        return REMAT_OK;
    return add_layer(builder, &wanted, output);
}

remat_status network_add_described(network_builder *builder, uint32_t described)
{
    const described_layer *layer = &builder->model->layers[described];
    uint64_t line;
    builder->described = described;
    remat_status status = add_described(builder, layer, &line);
    return model_blame(builder->model, layer->name, line, status);
}
