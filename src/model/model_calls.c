/* The public calls that describe a model: lists of "key=value" become the entries that the reader makes as well. */
#include "model/model_object.h"

#include "base/error.h"

#include <string.h>

/* ---- from texts to entries ---- */

static remat_status split_property(remat_model *model, const char *text, ini_entry *entry)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return remat_fail(model->context, REMAT_INVALID, NULL, "'%.60s' is no property; write key=value", text);
    size_t key = (size_t)(equals - text), skip = strspn(text, " \t");
    while (key > skip && (text[key - 1] == ' ' || text[key - 1] == '\t'))
        key--;
    char *folded = text_pool_part(&model->pool, text + skip, key - skip);
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    if (!folded)
        return REMAT_NO_MEMORY;
    ini_fold(folded);
    *entry = (ini_entry){folded, value, REMAT_NOWHERE};
    return REMAT_OK;
}

/* The values stay the caller's. `properties` may be NULL: none. */
static remat_status split_properties(remat_model *model, const char *const *properties, ini_entry **entries,
                                     size_t *count)
{
    *count = 0;
    while (properties && properties[*count])
        ++*count;
    if (*count > INI_MOST_KEYS)
        return remat_fail(model->context, REMAT_INVALID, NULL, "more than %d properties", INI_MOST_KEYS);
    *entries = text_pool_take(&model->pool, *count, sizeof **entries);
    if (!*entries)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < *count; i++)
        REMAT_TRY(split_property(model, properties[i], &(*entries)[i]));
    return REMAT_OK;
}

/* ---- the calls ---- */

remat_status remat_model_add_layer(remat_model *model, const char *type, const char *const *properties)
{
    ini_entry *entries;
    size_t count;
    REMAT_TRY(split_properties(model, properties, &entries, &count));
    return model_add_layer(model, type, NULL, entries, count, REMAT_NOWHERE);
}

remat_status remat_model_add_block(remat_model *model, const char *const *layers)
{
    size_t count = 0;
    while (layers && layers[count])
        count++;
    return model_add_block(model, NULL, layers, count, REMAT_NOWHERE);
}

/* Keeps a copy of the values, which settings point to. */
static remat_status keep_values(remat_model *model, ini_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(entries[i].value = text_pool_text(&model->pool, entries[i].value)))
            return REMAT_NO_MEMORY;
    return REMAT_OK;
}

static remat_status build_network(const remat_model *model, network_purpose purpose, remat_network **network)
{
    const network_options options = {.batch = model->settings.batch_size,
                                     .purpose = purpose,
                                     .dtype = purpose == NETWORK_TRAINING ? model_training_dtype(model) : REMAT_FP32};
    return network_build(model, &options, network);
}

remat_status remat_model_set(remat_model *model, const char *const *properties)
{
    ini_entry *entries;
    size_t count;
    REMAT_TRY(split_properties(model, properties, &entries, &count));
    REMAT_TRY(keep_values(model, entries, count));
    model_settings before = model->settings;
    REMAT_TRY(model_set(model, entries, count));
    if (!model->network || before.batch_size == model->settings.batch_size)
        return REMAT_OK;
    /* Another batch size for a compiled model: its shapes are found anew. */
    remat_network *network;
    remat_status status = build_network(model, model->network->options.purpose, &network);
    if (status != REMAT_OK) {
        model->settings = before;
        return status;
    }
    network_destroy(model->network);
    model->network = network;
    return REMAT_OK;
}

remat_status remat_model_set_optimizer(remat_model *model, const char *type, const char *const *properties)
{
    ini_entry *entries;
    size_t count;
    REMAT_TRY(split_properties(model, properties, &entries, &count));
    REMAT_TRY(keep_values(model, entries, count));
    return model_set_optimizer(model, type, entries, count, REMAT_NOWHERE);
}

remat_status remat_model_set_dataset(remat_model *model, const char *type, const char *const *properties)
{
    ini_entry *entries;
    size_t count;
    REMAT_TRY(split_properties(model, properties, &entries, &count));
    REMAT_TRY(keep_values(model, entries, count));
    return model_set_dataset(model, type, entries, count, REMAT_NOWHERE);
}

/* ---- compiled ---- */

static bool has_loss(const remat_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].type->labels != LAYER_NO_LABELS)
            return true;
    return false;
}

/* A block of one layer that saves nothing besides its input and output frees nothing. */
static void warn_of_blocks(const remat_model *model)
{
    const remat_network *network = model->network;
    for (uint32_t block = 0, at = 0; block < network->block_count; block++) {
        while (network->layers[at].block != block)
            at++;
        bool alone = at + 1 == network->layer_count || network->layers[at + 1].block != block;
        if (!alone || network->layers[at].node.saved_count)
            continue;
        const remat_place place = model_layer_place(model, network->layers[at].described);
        remat_warn(
            model->context, &place,
            "the block '%s' is only the layer '%s', whose input and output are kept all the same: it saves nothing",
            network->block_names[block], network->layers[at].node.name);
    }
}

remat_status remat_model_compile(remat_model *model)
{
    if (model->network)
        return remat_fail(model->context, REMAT_INVALID, NULL, "the model is compiled already");
    network_purpose purpose = has_loss(model) ? NETWORK_TRAINING : NETWORK_INFERENCE;
    REMAT_TRY(build_network(model, purpose, &model->network));
    warn_of_blocks(model);
    return REMAT_OK;
}
