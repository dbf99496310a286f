#include "model/network_builder.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* A network with the memory of its names and options. */
typedef struct network_whole {
    remat_network network; /* first, so that a remat_network is a network_whole */
    text_pool pool;
    size_t layer_capacity;
} network_whole;

void network_destroy(remat_network *network)
{
    if (!network || --network->users > 0)
        return;
    network_whole *whole = (network_whole *)network;
    remat_context *context = network->context;
    remat_release(context, network->layers, whole->layer_capacity, sizeof *network->layers);
    remat_release(context, network->parameters, network->parameter_count, sizeof *network->parameters);
    text_pool_end(&whole->pool);
    remat_release(context, whole, 1, sizeof *whole);
}

remat_status network_blame(const network_builder *builder, const network_layer *layer, remat_status status)
{
    return model_blame(builder->model, layer->node.name, builder->model->layers[layer->described].line, status);
}

#define layer_fail(builder, layer, ...) \
    network_blame(builder, layer, remat_fail((builder)->context, REMAT_INVALID, NULL, __VA_ARGS__))

/* ---- who reads what ---- */

void network_count_readers(network_builder *builder)
{
    const remat_network *network = builder->network;
    memset(builder->readers, 0, network->layer_count * sizeof *builder->readers);
    for (size_t i = 0; i < network->layer_count; i++)
        for (uint32_t j = 0; j < network->layers[i].node.input_count; j++)
            if (network->layers[i].inputs[j] != NETWORK_LABELS)
                builder->readers[network->layers[i].inputs[j]]++;
}

/* What is computed and read by nobody would be trained in vain. */
static remat_status check_read(const network_builder *builder)
{
    const remat_network *network = builder->network;
    for (size_t i = 0; i < network->layer_count; i++)
        if (!builder->readers[i] && !network->layers[i].node.loss)
            return layer_fail(builder, &network->layers[i],
                              "no layer reads it; only the loss may stand at the end of a model that is trained");
    return REMAT_OK;
}

/* ---- element types ---- */

/* Tokens come straight from the data: who reads an input as tokens makes it one of int32, and nothing else may read it. */
static remat_status type_input(const network_builder *builder, const network_layer *layer, uint32_t input,
                               unsigned char *uses)
{
    enum { NUMBERS = 1, TOKENS = 2 };
    const uint32_t from = layer->inputs[input];
    layer_node *source = &builder->network->layers[from].node;
    const layer_type *type = layer->node.type;
    const bool tokens = type->reads_tokens && type->reads_tokens(&layer->node, input);
    if (tokens && source->input_count)
        return layer_fail(builder, layer, "it reads whole numbers, which only a layer of type input has, not '%s'",
                          source->name);
    uses[from] |= tokens ? TOKENS : NUMBERS;
    if (uses[from] == (NUMBERS | TOKENS))
        return layer_fail(builder, layer, "'%s' is read as whole numbers and as others; make it two inputs",
                          source->name);
    if (tokens)
        source->dtype = REMAT_INT32;
    return REMAT_OK;
}

/* Functions of the user compute in fp32. */
static remat_status check_full_inputs(const network_builder *builder, const network_layer *layer)
{
    for (uint32_t i = 0; i < layer->node.input_count && layer->node.type->fp32_inputs; i++)
        if (layer->node.input_dtypes[i] == REMAT_BF16)
            return layer_fail(builder, layer, "it computes in fp32, and '%s' is in bf16; give that one precision=fp32",
                              builder->network->layers[layer->inputs[i]].node.name);
    return REMAT_OK;
}

/* A view has the type of its input. So has a sum: its gradient is that of its inputs, which are therefore of one type. */
static remat_status type_passing(const network_builder *builder, network_layer *layer)
{
    layer_node *node = &layer->node;
    if (!node->passes_gradient || node->input_dtypes[0] == REMAT_INT32)
        return REMAT_OK;
    node->dtype = node->input_dtypes[0];
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->input_dtypes[i] != node->dtype)
            return layer_fail(builder, layer, "it reads '%s' in %s and '%s' in %s; give both the same precision",
                              builder->network->layers[layer->inputs[0]].node.name, remat_dtype_name(node->dtype),
                              builder->network->layers[layer->inputs[i]].node.name,
                              remat_dtype_name(node->input_dtypes[i]));
    return REMAT_OK;
}

static remat_status type_inputs(const network_builder *builder)
{
    remat_network *network = builder->network;
    unsigned char *uses = remat_alloc_zeroed(builder->context, network->layer_count, 1);
    remat_status status = uses ? REMAT_OK : REMAT_NO_MEMORY;
    for (size_t i = 0; i < network->layer_count; i++) {
        network_layer *layer = &network->layers[i];
        for (uint32_t j = 0; j < layer->node.input_count && status == REMAT_OK; j++) {
            uint32_t from = layer->inputs[j];
            if (from != NETWORK_LABELS)
                status = type_input(builder, layer, j, uses);
            layer->node.input_dtypes[j] =
                from == NETWORK_LABELS ? network->labels_dtype : network->layers[from].node.dtype;
        }
        if (status == REMAT_OK)
            status = type_passing(builder, layer);
        if (status == REMAT_OK)
            status = check_full_inputs(builder, layer);
    }
    remat_release(builder->context, uses, network->layer_count, 1);
    return status;
}

/* ---- blocks ---- */

/* Numbers the blocks that have layers in the order of the network. Merging may have emptied one. */
static remat_status number_blocks(network_builder *builder)
{
    const remat_model *model = builder->model;
    remat_network *network = builder->network;
    const char **names = text_pool_take(builder->pool, model->block_count, sizeof *names);
    if (!names)
        return REMAT_NO_MEMORY;
    uint32_t before = NETWORK_NONE; /* the described block of the layer before */
    for (size_t i = 0; i < network->layer_count; i++) {
        uint32_t block = network->layers[i].block;
        if (block != NETWORK_NONE && block != before)
            names[network->block_count++] = model->blocks[block].name;
        before = block;
        network->layers[i].block = block == NETWORK_NONE ? NETWORK_NONE : network->block_count - 1;
    }
    network->block_names = names;
    return REMAT_OK;
}

/* ---- all of it ---- */

static remat_status no_loss(const network_builder *builder)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = builder->model->file;
    return remat_fail(builder->context, place.file ? REMAT_BAD_INPUT : REMAT_INVALID, &place,
                      "the model has no loss; add a layer of type mse or cross_entropy to train it");
}

static remat_status check_master(const network_builder *builder)
{
    const remat_network *network = builder->network;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = builder->model->file;
    if (network->options.purpose != NETWORK_TRAINING || builder->model->settings.master ||
        network->options.dtype == REMAT_BF16)
        return REMAT_OK;
    return remat_fail(builder->context, place.file ? REMAT_BAD_INPUT : REMAT_INVALID, &place,
                      "master=false keeps weights in bf16; it needs precision=bf16");
}

/* Data comes in by a list of fixed length. */
static remat_status check_inputs(const network_builder *builder)
{
    const remat_network *network = builder->network;
    size_t inputs = 0;
    for (size_t i = 0; i < network->layer_count; i++)
        if (network->layers[i].node.input_count == 0 && ++inputs > LAYER_MAX_INPUTS)
            return layer_fail(builder, &network->layers[i], "a model has at most %d layers of type input",
                              LAYER_MAX_INPUTS);
    return REMAT_OK;
}

/* Whether a pattern matches a layer, of whatever type. */
static const char *find_match(const remat_model *model, const char *pattern)
{
    const pattern_list one = {&pattern, 1};
    for (size_t i = 0; i < model->layer_count; i++)
        if (tuning_find(&one, model->layers[i].name))
            return model->layers[i].type->name;
    return NULL;
}

/* A pattern that matches nothing is a typing error. */
static remat_status check_patterns(const network_builder *builder, const char *what, const char *file,
                                   const pattern_list *patterns, uint64_t matched)
{
    const remat_place place = {file, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, file ? "target_modules" : NULL};
    for (size_t i = 0; i < patterns->count && i < 64; i++) {
        if (matched >> i & 1 || strcmp(patterns->items[i], "all-linear") == 0)
            continue;
        const char *type = find_match(builder->model, patterns->items[i]);
        return remat_fail(builder->context, file ? REMAT_BAD_INPUT : REMAT_INVALID, file ? &place : NULL,
                          "%s%sno %slayer matches '%.80s'%s%s; `remat summary` lists their names", file ? "" : what,
                          file ? "" : ": ", type ? "fully_connected " : "", patterns->items[i],
                          type ? ", which is of type " : "", type ? type : "");
    }
    return REMAT_OK;
}

/* Layers that share a weight are trained together. This is about the pattern, not about a line of the model. */
static remat_status check_tied(const network_builder *builder)
{
    const remat_network *network = builder->network;
    for (size_t i = 0; i < network->layer_count && builder->model->tuning.trained.count; i++) {
        const layer_node *reader = &network->layers[i].node;
        for (size_t j = 0; j < i && reader->shared_from && reader->type != &layer_type_lora; j++) {
            const layer_node *owner = &network->layers[j].node;
            if (strcmp(owner->name, reader->shared_from) == 0 && owner->frozen != reader->frozen)
                return remat_fail(
                    builder->context, REMAT_INVALID, NULL,
                    "train: it names '%.80s' and not '%.80s', but they are tied: both have the same weight. "
                    "Train both, with %.80s+%.80s, or neither",
                    reader->frozen ? owner->name : reader->name, reader->frozen ? reader->name : owner->name,
                    reader->name, owner->name);
        }
    }
    return REMAT_OK;
}

static remat_status build(network_builder *builder)
{
    remat_network *network = builder->network;
    const remat_model *model = builder->model;
    REMAT_TRY(check_master(builder));
    for (uint32_t i = 0; i < model->layer_count; i++)
        REMAT_TRY(network_add_described(builder, i));
    REMAT_TRY(check_inputs(builder));
    REMAT_TRY(check_patterns(builder, "lora: targets", model->tuning.file, &model->tuning.targets, builder->targets));
    REMAT_TRY(check_patterns(builder, "train", NULL, &model->tuning.trained, builder->trained));
    REMAT_TRY(check_tied(builder));
    builder->reader_count = network->layer_count;
    builder->readers = remat_alloc(builder->context, builder->reader_count, sizeof *builder->readers);
    if (!builder->readers)
        return REMAT_NO_MEMORY;
    network_count_readers(builder);
    if (network->options.purpose != NETWORK_INFERENCE && !network->has_labels)
        return no_loss(builder);
    if (network->options.purpose != NETWORK_INFERENCE)
        REMAT_TRY(check_read(builder));
    if (network->options.purpose == NETWORK_TRAINING) {
        REMAT_TRY(network_fuse(builder));
        REMAT_TRY(network_find_unread(builder));
    }
    REMAT_TRY(type_inputs(builder));
    if (network->options.purpose == NETWORK_TRAINING)
        network_join(builder);
    REMAT_TRY(number_blocks(builder));
    REMAT_TRY(network_number_parameters(builder));
    REMAT_TRY(network_find_room(builder));
    return remat_fit(builder->context, (void **)&network->layers, &builder->layer_capacity, network->layer_count,
                     sizeof *network->layers);
}

remat_status network_build(const remat_model *model, const network_options *options, remat_network **made)
{
    remat_context *context = model->context;
    *made = NULL;
    if (options->batch == 0)
        return remat_fail(context, REMAT_INVALID, NULL, "a batch has at least one sample");
    if (model->layer_count == 0)
        return model_blame(model, NULL, 1, remat_fail(context, REMAT_INVALID, NULL, "the model has no layers"));
    network_whole *whole = remat_alloc_zeroed(context, 1, sizeof *whole);
    if (!whole)
        return REMAT_NO_MEMORY;
    whole->network = (remat_network){.context = context, .users = 1, .options = *options, .batch = options->batch};
    whole->network.adapter = model->settings.adapter;
    if (!options->device)
        whole->network.options.device = model->processor;
    text_pool_begin(&whole->pool, context);
    network_builder builder = {.model = model, .context = context, .network = &whole->network, .pool = &whole->pool};
    builder.outputs = remat_alloc(context, model->layer_count, sizeof *builder.outputs);
    remat_status status = builder.outputs ? build(&builder) : REMAT_NO_MEMORY;
    whole->layer_capacity = builder.layer_capacity;
    remat_release(context, builder.outputs, model->layer_count, sizeof *builder.outputs);
    remat_release(context, builder.readers, builder.reader_count, sizeof *builder.readers);
    if (status == REMAT_OK)
        *made = &whole->network;
    else
        network_destroy(&whole->network);
    return status;
}

static bool is_for(const remat_network *network, const network_options *options, const backend *processor)
{
    const backend *device = options->device ? options->device : processor;
    return network->options.batch == options->batch && network->options.purpose == options->purpose &&
           network->options.dtype == options->dtype && network->options.length == options->length &&
           network->options.device->type == device->type &&
           strcmp(network->options.device->kernels, device->kernels) == 0; /* they differ in what they take in bf16 */
}

remat_status network_get(const remat_model *model, const network_options *options, remat_network **network)
{
    *network = model->network;
    if (!*network || !is_for(*network, options, model->processor))
        return network_build(model, options, network);
    (*network)->users++;
    return REMAT_OK;
}

bool network_has_yes_or_no(const remat_network *network)
{
    for (size_t i = network->layer_count; i-- > 0;)
        if (network->layers[i].node.type->labels != LAYER_NO_LABELS)
            return strcmp(network->layers[i].node.type->name, "binary_cross_entropy") == 0;
    return false;
}
