/* The description of a model: each call checks and copies its arguments. */
#include "model/model_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"

#include <string.h>

remat_status remat_model_create(remat_context *context, remat_model **model)
{
    *model = NULL;
    remat_model *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    text_pool_begin(&made->pool, context);
    model_names_begin(&made->layer_names, context);
    model_names_begin(&made->block_names, context);
    made->order = text_pool_take(&made->pool, 1, sizeof *made->order);
    remat_status status = made->order ? model_settings_begin(made) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = backend_open(context, &(backend_options){0}, &made->processor);
    if (status == REMAT_OK)
        *model = made;
    else
        remat_model_destroy(made);
    return status;
}

void remat_model_destroy(remat_model *model)
{
    if (!model)
        return;
    remat_context *context = model->context;
    network_destroy(model->network);
    backend_close(model->processor);
    if (model->order)
        remat_release(context, model->order->layers, model->order->count, sizeof *model->order->layers);
    remat_release(context, model->layers, model->layer_capacity, sizeof *model->layers);
    remat_release(context, model->blocks, model->block_capacity, sizeof *model->blocks);
    model_names_end(&model->layer_names);
    model_names_end(&model->block_names);
    text_pool_end(&model->pool);
    remat_release(context, model, 1, sizeof *model);
}

remat_context *model_context(const remat_model *model)
{
    return model->context;
}

/* A line of the file, or the setting that changed it. */
static remat_place place_of(const remat_model *model, uint64_t line)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    if (!model->file || line == REMAT_NOWHERE)
        return place;
    place.file = ini_is_setting(line) ? model->set[line - INI_SETTING] : model->file;
    place.line = ini_is_setting(line) || model->folder ? REMAT_NOWHERE : line;
    return place;
}

remat_status model_blame(const remat_model *model, const char *layer, uint64_t line, remat_status status)
{
    if (status != REMAT_INVALID && status != REMAT_BAD_INPUT)
        return status;
    const remat_place place = place_of(model, line);
    status = place.file && !ini_is_setting(line) ? REMAT_BAD_INPUT : REMAT_INVALID;
    const char *message = remat_context_message(model->context);
    if (layer)
        return remat_fail(model->context, status, &place, "layer '%.80s': %s", layer, message);
    return remat_fail(model->context, status, &place, "%s", message);
}

remat_place model_layer_place(const remat_model *model, uint32_t described)
{
    return place_of(model, model->layers[described].line);
}

/* ---- layers ---- */

/* What the model itself knows of a layer, taken out of its properties. */
typedef struct layer_words {
    const ini_entry *name, *inputs, *block, *trainable, *precision;
} layer_words;

static remat_status check_twice(const remat_model *model, const ini_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (names_equal(entries[i].key, entries[j].key))
                return remat_fail(model->context, REMAT_INVALID, NULL, "%s: said twice", entries[i].key);
    return REMAT_OK;
}

static void find_words(const ini_entry *entries, size_t count, layer_words *words)
{
    for (size_t i = 0; i < count; i++) {
        const ini_entry *entry = &entries[i];
        if (strcmp(entry->key, "name") == 0)
            words->name = entry;
        else if (strcmp(entry->key, "input_layers") == 0)
            words->inputs = entry;
        else if (strcmp(entry->key, "block") == 0)
            words->block = entry;
        else if (strcmp(entry->key, "trainable") == 0)
            words->trainable = entry;
        else if (strcmp(entry->key, "precision") == 0)
            words->precision = entry;
    }
}

static bool is_word(const layer_words *words, const ini_entry *entry)
{
    return entry == words->name || entry == words->inputs || entry == words->block || entry == words->trainable ||
           entry == words->precision;
}

static remat_status set_property(remat_model *model, const layer_type *type, void *options, const ini_entry *entry)
{
    const property *about = property_find(type->properties, entry->key);
    const char *text = entry->value;
    if (about && about->kind == PROPERTY_TEXT && !(text = text_pool_text(&model->pool, text)))
        return REMAT_NO_MEMORY;
    remat_status status = property_set(model->context, type->name, type->properties, options, entry->key, text);
    if (about || status != REMAT_INVALID)
        return status;
    if (names_equal(entry->key, "activation"))
        return remat_fail(
            model->context, status, NULL,
            "%s has no activation; add a section behind it, with type = activation and activation = %.60s", type->name,
            text);
    return remat_fail(model->context, status, NULL, "%s; every layer has input_layers, block, trainable and precision",
                      remat_context_message(model->context));
}

/* The first property that must be said and was not; NULL where none. */
static const char *missing_property(const layer_type *type, const ini_entry *entries, size_t count)
{
    for (const property *about = type->properties; about && about->key; about++) {
        bool is_set = about->default_text != NULL;
        for (size_t i = 0; i < count && !is_set; i++)
            is_set = names_equal(entries[i].key, about->key);
        if (!is_set)
            return about->key;
    }
    return NULL;
}

/* What is said of the layer becomes its options. */
static remat_status make_options(remat_model *model, described_layer *layer, const ini_entry *entries, size_t count,
                                 const layer_words *words)
{
    const layer_type *type = layer->type;
    void *options = text_pool_take(&model->pool, 1, type->options_bytes);
    remat_status status = options ? properties_init(model->context, type->properties, options) : REMAT_NO_MEMORY;
    uint64_t line = layer->line;
    for (size_t i = 0; i < count && status == REMAT_OK; i++) {
        if (is_word(words, &entries[i]))
            continue;
        line = entries[i].line;
        status = set_property(model, type, options, &entries[i]);
    }
    const char *missing = status == REMAT_OK ? missing_property(type, entries, count) : NULL;
    if (missing) {
        line = layer->line;
        status = remat_fail(model->context, REMAT_INVALID, NULL, "%s needs '%s'", type->name, missing);
    }
    layer->options = options;
    return model_blame(model, layer->name, line, status);
}

/* A name from the type and the first number that is free, from the layer's position on. */
static remat_status make_name(remat_model *model, described_layer *layer)
{
    char number[24];
    for (size_t i = model->layer_count;; i++) {
        snprintf(number, sizeof number, "%zu", i);
        layer->name = text_pool_join(&model->pool, (const char *const[]){layer->type->name, number, NULL});
        if (!layer->name)
            return REMAT_NO_MEMORY;
        if (model_names_find(&model->layer_names, layer->name) == MODEL_NAME_NONE)
            return REMAT_OK;
    }
}

static remat_status check_name(const remat_model *model, const char *name)
{
    REMAT_TRY(model_name_check(model->context, "layer", name));
    uint32_t other = model_names_find(&model->layer_names, name);
    if (other == MODEL_NAME_NONE)
        return REMAT_OK;
    uint64_t line = model->layers[other].line;
    if (line == REMAT_NOWHERE || ini_is_setting(line))
        return remat_fail(model->context, REMAT_INVALID, NULL, "there is a layer '%s' already", name);
    return remat_fail(model->context, REMAT_INVALID, NULL, "there is a layer '%s' already, in line %llu", name,
                      (unsigned long long)line);
}

static remat_status read_trainable(const remat_model *model, const ini_entry *entry, described_layer *layer)
{
    layer->frozen = entry && names_equal(entry->value, "false");
    if (!entry || layer->frozen || names_equal(entry->value, "true"))
        return REMAT_OK;
    return model_blame(
        model, layer->name, entry->line,
        remat_fail(model->context, REMAT_INVALID, NULL, "trainable: '%.60s' is neither true nor false", entry->value));
}

static remat_status read_precision(const remat_model *model, const ini_entry *entry, described_layer *layer)
{
    layer->fp32 = entry && names_equal(entry->value, "fp32");
    if (!entry || layer->fp32)
        return REMAT_OK;
    return model_blame(model, NULL, entry->line,
                       remat_fail(model->context, REMAT_INVALID, NULL,
                                  "precision: '%.60s' is not fp32; bf16 is said once, in [Model]", entry->value));
}

/* Whatever can fail comes first, so that a layer is in its block and in the list, or in neither. */
static remat_status append_layer(remat_model *model, described_layer *layer, const ini_entry *block)
{
    void *layers = model->layers;
    REMAT_TRY(remat_grow(model->context, &layers, &model->layer_capacity, model->layer_count + 1, sizeof *layer));
    model->layers = layers;
    REMAT_TRY(model_names_reserve(&model->layer_names));
    if (block)
        REMAT_TRY(model_join_block(model, layer, block->value, block->line));
    model_names_add(&model->layer_names, layer->name, (uint32_t)model->layer_count);
    model->layers[model->layer_count++] = *layer;
    return REMAT_OK;
}

remat_status model_add_layer(remat_model *model, const char *type, const char *name, const ini_entry *entries,
                             size_t count, uint64_t line)
{
    remat_context *context = model->context;
    if (model->network)
        return remat_fail(context, REMAT_INVALID, NULL, "a layer cannot be added to a compiled model");
    if (model->layer_count == MODEL_MOST_LAYERS)
        return model_blame(model, NULL, line,
                           remat_fail(context, REMAT_INVALID, NULL, "more than %d layers", MODEL_MOST_LAYERS));
    described_layer layer = {.block = NETWORK_NONE, .line = line};
    layer_words words = {0};
    if (!name)
        for (size_t i = 0; i < count; i++)
            name = strcmp(entries[i].key, "name") == 0 ? entries[i].value : name;
    const char *called = name ? name : type;
    REMAT_TRY(model_blame(model, called, line, check_twice(model, entries, count)));
    REMAT_TRY(model_blame(model, called, line, model_find_type(context, type, &layer.type)));
    find_words(entries, count, &words);
    if (name)
        REMAT_TRY(model_blame(model, NULL, line, check_name(model, name)));
    if (name && !(layer.name = text_pool_text(&model->pool, name)))
        return REMAT_NO_MEMORY;
    if (!name)
        REMAT_TRY(make_name(model, &layer));
    if (words.inputs) {
        layer.inputs_line = words.inputs->line;
        REMAT_TRY(model_split_list(&model->pool, words.inputs->value, &layer.inputs, &layer.input_count));
    }
    REMAT_TRY(read_trainable(model, words.trainable, &layer));
    REMAT_TRY(read_precision(model, words.precision, &layer));
    REMAT_TRY(make_options(model, &layer, entries, count, &words));
    return append_layer(model, &layer, words.block);
}

remat_status model_split_list(text_pool *pool, const char *text, const char *const **items, size_t *count)
{
    size_t commas = 0;
    for (const char *at = text; *at; at++)
        commas += *at == ',';
    const char **made = text_pool_take(pool, commas + 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    for (*count = 0; *count <= commas; ++*count) {
        size_t length = strcspn(text, ","), skip = strspn(text, " \t"), end = length;
        skip = skip < length ? skip : length;
        while (end > skip && (text[end - 1] == ' ' || text[end - 1] == '\t'))
            end--;
        made[*count] = text_pool_part(pool, text + skip, end - skip);
        if (!made[*count])
            return REMAT_NO_MEMORY;
        text += length + (text[length] == ',');
    }
    *items = made;
    return REMAT_OK;
}
