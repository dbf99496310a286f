/* config.json: its keys become a list of texts, of which each family takes its own. Keys that change nothing here (dropout, cache,
 * types of the weights) are not looked at. */
#include "model/pretrained.h"

#include "base/json_fields.h"
#include "base/number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_KEYS = 512, NESTED = 64 };

typedef struct config_entry {
    const char *key; /* "rope_scaling.factor" for one inside */
    json_kind kind;
    const char *text;
    uint64_t integer;
    bool in_range;
    uint64_t line;
} config_entry;

typedef struct config_list {
    text_pool *pool;
    const char *name;
    json_reader *reader;
    config_entry entries[MOST_KEYS];
    size_t count;
    const char *layer_type; /* that all items of layer_types have; "": they differ; NULL: there are none */
} config_list;

/* ---- reading ---- */

static remat_status fail_at(const config_list *list, uint64_t line, const char *key, const char *text)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = list->name;
    place.line = line;
    place.field = key;
    return remat_fail(list->pool->context, REMAT_BAD_INPUT, &place, "%s", text);
}

static remat_status add_entry(config_list *list, const char *outer, const char *key, const json_token *token)
{
    if (list->count == MOST_KEYS)
        return fail_at(list, json_place(list->reader).line, key, "too many keys for a config.json");
    config_entry *entry = &list->entries[list->count];
    const char *const pieces[] = {outer, *outer ? "." : "", key, NULL};
    *entry = (config_entry){.kind = token->kind, .integer = token->integer, .in_range = token->in_range};
    entry->key = text_pool_join(list->pool, pieces);
    entry->text = text_pool_text(list->pool, token->text ? token->text : "");
    entry->line = json_place(list->reader).line;
    if (!entry->key || !entry->text)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].key, entry->key) == 0)
            return fail_at(list, entry->line, entry->key, "it is there twice");
    list->count++;
    return REMAT_OK;
}

/* The items of layer_types, behind the bracket. */
static remat_status read_layer_types(config_list *list)
{
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(list->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_STRING)
            return fail_at(list, json_place(list->reader).line, "layer_types", "it must hold texts");
        if (!list->layer_type && !(list->layer_type = text_pool_text(list->pool, token.text)))
            return REMAT_NO_MEMORY;
        if (strcmp(list->layer_type, token.text) != 0)
            list->layer_type = "";
    }
}

/* Behind an opening brace. Objects inside, such as rope_scaling, are taken one level deep. */
static remat_status read_object(config_list *list, const char *outer)
{
    for (;;) {
        json_token token;
        char key[256];
        REMAT_TRY(json_next(list->reader, &token));
        if (token.kind == JSON_OBJECT_END)
            return REMAT_OK;
        snprintf(key, sizeof key, "%.200s", token.text);
        REMAT_TRY(json_next(list->reader, &token));
        if (token.kind == JSON_OBJECT && !*outer)
            REMAT_TRY(read_object(list, key));
        else if (token.kind == JSON_ARRAY && !*outer && strcmp(key, "layer_types") == 0)
            REMAT_TRY(read_layer_types(list));
        else if (token.kind == JSON_OBJECT || token.kind == JSON_ARRAY)
            REMAT_TRY(json_skip_rest(list->reader, &token));
        else
            REMAT_TRY(add_entry(list, outer, key, &token));
    }
}

/* ---- values ---- */

/* NULL: it is missing, or null. */
static const config_entry *find(const config_list *list, const char *key)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].key, key) == 0)
            return list->entries[i].kind == JSON_NULL ? NULL : &list->entries[i];
    return NULL;
}

/* `otherwise` 0: the key must be there. */
static remat_status get_count(const config_list *list, const char *key, uint64_t otherwise, uint64_t *value)
{
    const config_entry *entry = find(list, key);
    *value = otherwise;
    if (!entry && otherwise == 0)
        return fail_at(list, REMAT_NOWHERE, key, "it is missing; a model of this family needs it");
    if (!entry)
        return REMAT_OK;
    if (entry->kind != JSON_INTEGER || !entry->in_range || entry->integer == 0 || entry->integer > INT32_MAX)
        return fail_at(list, entry->line, key, "it must be a whole number from 1 to 2147483647");
    *value = entry->integer;
    return REMAT_OK;
}

static remat_status get_number(const config_list *list, const char *key, double otherwise, double *value)
{
    const config_entry *entry = find(list, key);
    *value = otherwise;
    if (!entry)
        return REMAT_OK;
    const char *end;
    if ((entry->kind != JSON_INTEGER && entry->kind != JSON_REAL) || !number_parse(entry->text, &end, value) || *end ||
        *value < 0)
        return fail_at(list, entry->line, key, "it must be a number from 0 on");
    return REMAT_OK;
}

static remat_status get_flag(const config_list *list, const char *key, bool otherwise, bool *value)
{
    const config_entry *entry = find(list, key);
    *value = otherwise;
    if (!entry)
        return REMAT_OK;
    if (entry->kind != JSON_TRUE && entry->kind != JSON_FALSE)
        return fail_at(list, entry->line, key, "it must be true or false");
    *value = entry->kind == JSON_TRUE;
    return REMAT_OK;
}

static remat_status get_text(const config_list *list, const char *key, const char *otherwise, const char **value)
{
    const config_entry *entry = find(list, key);
    *value = entry ? entry->text : otherwise;
    return !entry || entry->kind == JSON_STRING ? REMAT_OK : fail_at(list, entry->line, key, "it must be a text");
}

static remat_status fail_value(const config_list *list, const char *key, const char *value, const char *allowed)
{
    const config_entry *entry = find(list, key);
    char text[400];
    snprintf(text, sizeof text, "'%.100s' is not supported; it may be %.200s", value, allowed);
    return fail_at(list, entry ? entry->line : REMAT_NOWHERE, key, text);
}

/* ---- families ---- */

static remat_status get_activation(const config_list *list, const char *key, const char *otherwise, const char **name)
{
    static const char *const names[][2] = {{"silu", "swish"},
                                           {"swish", "swish"},
                                           {"gelu_new", "gelu"},
                                           {"gelu_pytorch_tanh", "gelu"},
                                           {"gelu", "gelu_erf"}};
    const char *theirs;
    REMAT_TRY(get_text(list, key, otherwise, &theirs));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(theirs, names[i][0]) == 0) {
            *name = names[i][1];
            return REMAT_OK;
        }
    return fail_value(list, key, theirs, "silu, swish, gelu, gelu_new or gelu_pytorch_tanh");
}

static remat_status get_family(const config_list *list, pretrained_family *family)
{
    static const char *const names[] = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};
    const char *name;
    REMAT_TRY(get_text(list, "model_type", "", &name));
    if (!*name)
        return fail_at(list, REMAT_NOWHERE, "model_type", "it is missing; it says which family the model is of");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *family = (pretrained_family)i;
            return REMAT_OK;
        }
    return fail_value(list, "model_type", name, "gpt2, llama, mistral, qwen2 or qwen3");
}

/* The object with the angles is called rope_scaling, in newer files rope_parameters. */
static const char *rope_key(const config_list *list, const char *leaf, char key[NESTED])
{
    snprintf(key, NESTED, "rope_parameters.%s", leaf);
    if (!find(list, key))
        snprintf(key, NESTED, "rope_scaling.%s", leaf);
    return key;
}

static remat_status get_rope(const config_list *list, pretrained_config *config)
{
    pretrained_rope *rope = &config->rope;
    char key[NESTED];
    const char *type, *older;
    REMAT_TRY(get_number(list, "rope_theta", 10000, &rope->theta));
    REMAT_TRY(get_number(list, rope_key(list, "rope_theta", key), rope->theta, &rope->theta));
    REMAT_TRY(get_text(list, rope_key(list, "type", key), "default", &older));
    REMAT_TRY(get_text(list, rope_key(list, "rope_type", key), older, &type));
    if (!(rope->theta > 1))
        return fail_at(list, REMAT_NOWHERE, "rope_theta", "it must be above 1");
    rope->scaling = "none";
    if (strcmp(type, "default") == 0)
        return REMAT_OK;
    const bool yarn = strcmp(type, "yarn") == 0;
    if (!yarn && strcmp(type, "linear") != 0 && strcmp(type, "dynamic") != 0 && strcmp(type, "llama3") != 0)
        return fail_value(list,
                          rope_key(list, find(list, rope_key(list, "rope_type", key)) ? "rope_type" : "type", key),
                          type, "default, linear, dynamic, llama3 or yarn");
    rope->scaling = type;
    REMAT_TRY(get_number(list, rope_key(list, "factor", key), 0, &rope->factor));
    if (!(rope->factor > 0))
        return fail_at(list, REMAT_NOWHERE, rope_key(list, "factor", key), "it must be there, and above 0");
    REMAT_TRY(get_count(list, rope_key(list, "original_max_position_embeddings", key), config->positions,
                        &rope->original_length));
    REMAT_TRY(get_number(list, rope_key(list, yarn ? "beta_slow" : "low_freq_factor", key), 1, &rope->low));
    REMAT_TRY(
        get_number(list, rope_key(list, yarn ? "beta_fast" : "high_freq_factor", key), yarn ? 32 : 4, &rope->high));
    return get_number(list, rope_key(list, "attention_factor", key), 0, &rope->attention_factor);
}

/* Which layers see a window only. All or none: a model file repeats one layer. */
static remat_status get_window(const config_list *list, pretrained_config *config)
{
    const bool is_qwen = config->family == FAMILY_QWEN2 || config->family == FAMILY_QWEN3;
    bool used = config->family == FAMILY_MISTRAL;
    uint64_t from = 0;
    if (is_qwen) {
        REMAT_TRY(get_flag(list, "use_sliding_window", false, &used));
        REMAT_TRY(get_count(list, "max_window_layers", 28, &from));
        used = used && from < config->layers;
    }
    if (list->layer_type) {
        used = strcmp(list->layer_type, "full_attention") != 0;
        from = 0;
        if (used && strcmp(list->layer_type, "sliding_attention") != 0)
            return fail_at(list, REMAT_NOWHERE, "layer_types",
                           "the layers must all be full_attention or all be sliding_attention");
    }
    if (!used || !find(list, "sliding_window"))
        return REMAT_OK;
    if (from > 0)
        return fail_at(list, REMAT_NOWHERE, "max_window_layers",
                       "only some layers have a window; all or none of them may have one");
    return get_count(list, "sliding_window", 0, &config->window);
}

static remat_status fail_division(const config_list *list, const char *key, uint64_t value, const char *of,
                                  uint64_t divided)
{
    char text[160];
    snprintf(text, sizeof text, "%" PRIu64 " does not divide %s, which is %" PRIu64, value, of, divided);
    return fail_at(list, find(list, key)->line, key, text);
}

static remat_status read_gpt2(const config_list *list, pretrained_config *config)
{
    bool inverse;
    REMAT_TRY(get_count(list, "n_embd", 0, &config->width));
    REMAT_TRY(get_count(list, "n_layer", 0, &config->layers));
    REMAT_TRY(get_count(list, "n_head", 0, &config->heads));
    REMAT_TRY(get_count(list, "n_positions", 1024, &config->positions));
    REMAT_TRY(get_count(list, "n_inner", 4 * config->width, &config->inner));
    REMAT_TRY(get_number(list, "layer_norm_epsilon", 1e-5, &config->epsilon));
    REMAT_TRY(get_activation(list, "activation_function", "gelu_new", &config->activation));
    REMAT_TRY(get_flag(list, "scale_attn_by_inverse_layer_idx", false, &inverse));
    if (inverse)
        return fail_value(list, "scale_attn_by_inverse_layer_idx", "true", "false");
    if (config->width % config->heads != 0)
        return fail_division(list, "n_head", config->heads, "n_embd", config->width);
    return get_flag(list, "tie_word_embeddings", true, &config->tied);
}

static remat_status read_llama(const config_list *list, pretrained_config *config)
{
    const uint64_t most = config->family == FAMILY_LLAMA ? 2048 : config->family == FAMILY_MISTRAL ? 131072 : 32768;
    uint64_t head = 0;
    REMAT_TRY(get_count(list, "hidden_size", 0, &config->width));
    REMAT_TRY(get_count(list, "intermediate_size", 0, &config->inner));
    REMAT_TRY(get_count(list, "num_hidden_layers", 0, &config->layers));
    REMAT_TRY(get_count(list, "num_attention_heads", 0, &config->heads));
    REMAT_TRY(get_count(list, "num_key_value_heads", config->heads, &config->key_heads));
    REMAT_TRY(get_count(list, "max_position_embeddings", most, &config->positions));
    if (config->heads % config->key_heads != 0)
        return fail_division(list, "num_key_value_heads", config->key_heads, "num_attention_heads", config->heads);
    if (!find(list, "head_dim")) {
        head = config->family == FAMILY_QWEN3 ? 128 : config->width / config->heads;
        if (config->family != FAMILY_QWEN3 && config->width % config->heads != 0)
            return fail_division(list, "num_attention_heads", config->heads, "hidden_size", config->width);
    }
    REMAT_TRY(get_count(list, "head_dim", head, &config->head_size));
    if (config->head_size % 2 != 0)
        return fail_at(list, REMAT_NOWHERE, "head_dim",
                       "the heads have an odd number of values; they are turned in pairs");
    REMAT_TRY(get_number(list, "rms_norm_eps", 1e-6, &config->epsilon));
    REMAT_TRY(get_activation(list, "hidden_act", "silu", &config->activation));
    REMAT_TRY(get_flag(list, "attention_bias", config->family == FAMILY_QWEN2, &config->query_bias));
    config->output_bias = config->query_bias && config->family != FAMILY_QWEN2;
    REMAT_TRY(get_flag(list, "mlp_bias", false, &config->inner_bias));
    REMAT_TRY(get_flag(list, "tie_word_embeddings", false, &config->tied));
    REMAT_TRY(get_rope(list, config));
    return get_window(list, config);
}

enum { MOST_LAYERS = 100000 }; /* copies of a group in a model file */

static remat_status check_layers(const config_list *list, const pretrained_config *config)
{
    const char *key = config->family == FAMILY_GPT2 ? "n_layer" : "num_hidden_layers";
    return config->layers <= MOST_LAYERS ? REMAT_OK
                                         : fail_at(list, find(list, key)->line, key, "100000 layers are the most");
}

/* Such weights are other tensors, with scales beside them. */
static remat_status refuse_quantized(const config_list *list)
{
    static const char object[] = "quantization_config";
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->entries[i].key, object, sizeof object - 1) == 0 && list->entries[i].kind != JSON_NULL)
            return fail_at(list, list->entries[i].line, object,
                           "its weights are quantized already; take the model in bf16, fp16 or fp32, and --frozen int4 "
                           "or int8");
    return REMAT_OK;
}

static remat_status read_family(const config_list *list, pretrained_config *config)
{
    REMAT_TRY(get_family(list, &config->family));
    REMAT_TRY(refuse_quantized(list));
    REMAT_TRY(get_count(list, "vocab_size", 0, &config->vocabulary));
    const char *newer;
    REMAT_TRY(get_text(list, "dtype", "", &newer));
    REMAT_TRY(get_text(list, "torch_dtype", newer, &config->dtype));
    REMAT_TRY(get_number(list, "initializer_range", 0.02, &config->init_scale));
    REMAT_TRY(config->family == FAMILY_GPT2 ? read_gpt2(list, config) : read_llama(list, config));
    return check_layers(list, config);
}

static remat_status read_list(config_list *list)
{
    json_token end;
    REMAT_TRY(json_read_open(list->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    REMAT_TRY(read_object(list, ""));
    return json_next(list->reader, &end); /* only blanks may follow */
}

remat_status pretrained_config_read(text_pool *pool, FILE *stream, const char *name, pretrained_config *config)
{
    *config = (pretrained_config){0};
    config_list *list = text_pool_take(pool, 1, sizeof *list);
    if (!list)
        return REMAT_NO_MEMORY;
    list->pool = pool;
    list->name = name;
    REMAT_TRY(json_reader_create(pool->context, stream, name, &list->reader));
    remat_status status = read_list(list);
    json_reader_destroy(list->reader);
    return status == REMAT_OK ? read_family(list, config) : status;
}
