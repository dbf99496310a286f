#include "model/tuning.h"

#include "base/error.h"
#include "base/input.h"
#include "base/json_fields.h"
#include "base/number_text.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

enum { MOST_PATTERNS = 1000 };
#define ALL_LINEAR "all-linear"

/* ---- patterns ---- */

const char *const *tuning_find(const pattern_list *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->count; i++)
        for (const char *at = name; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL)
            if (fnmatch(patterns->items[i], at, 0) == 0)
                return &patterns->items[i];
    return NULL;
}

static bool is_all(const pattern_list *targets)
{
    return targets->count == 1 && strcmp(targets->items[0], ALL_LINEAR) == 0;
}

bool tuning_is_target(const model_tuning *tuning, const char *name)
{
    if (!tuning->uses_lora)
        return false;
    return is_all(&tuning->targets) ? strcmp(name, "lm_head") != 0 : tuning_find(&tuning->targets, name) != NULL;
}

bool tuning_freezes(const model_tuning *tuning, const char *name)
{
    return (tuning->uses_lora || tuning->trained.count) && !tuning_find(&tuning->trained, name);
}

/* Splits "a+b". */
static remat_status read_patterns(text_pool *pool, const char *what, const char *text, pattern_list *list)
{
    size_t count = 1;
    for (const char *at = text; *at; at++)
        count += *at == '+';
    const char **items = text_pool_take(pool, count, sizeof *items);
    if (!items)
        return REMAT_NO_MEMORY;
    *list = (pattern_list){items, count};
    for (size_t i = 0; i < count; i++, text++) {
        const size_t length = strcspn(text, "+");
        if (length == 0 || count > MOST_PATTERNS)
            return remat_fail(pool->context, REMAT_INVALID, NULL,
                              "%s: names of layers, with a + between them, not '%.80s'", what, text);
        if (!(items[i] = text_pool_part(pool, text, length)))
            return REMAT_NO_MEMORY;
        text += length;
    }
    return REMAT_OK;
}

remat_status tuning_read_trained(text_pool *pool, const char *text, model_tuning *tuning)
{
    return read_patterns(pool, "train", text, &tuning->trained);
}

/* ---- --lora ---- */

typedef struct lora_fields {
    uint64_t rank;
    double alpha, dropout;
    const char *targets;
} lora_fields;

static const property lora_properties[] = {
    {"rank", PROPERTY_COUNT, offsetof(lora_fields, rank), "8", 1, 1000000, NULL, "the rank of the update"},
    {"alpha", PROPERTY_NUMBER, offsetof(lora_fields, alpha), "16", 0, 0, NULL, "the update is times alpha / rank"},
    {"dropout", PROPERTY_NUMBER, offsetof(lora_fields, dropout), "0", 0, 0.999999, NULL, "of the adapter's input"},
    {"targets", PROPERTY_TEXT, offsetof(lora_fields, targets), ALL_LINEAR, 0, 0, NULL, "the layers that get one"},
    {0},
};

remat_status tuning_read_lora(text_pool *pool, const char *text, model_tuning *tuning)
{
    lora_fields fields = {0};
    unsigned given = 0; /* a bit for each property */
    REMAT_TRY(properties_init(pool->context, lora_properties, &fields));
    while (*text) {
        const size_t length = strcspn(text, ","), equals = strcspn(text, "=");
        if (equals >= length)
            return remat_fail(pool->context, REMAT_INVALID, NULL,
                              "lora: '%.80s' is not key=value; write rank=8,alpha=16,targets=q_proj+v_proj", text);
        const char *key = text_pool_part(pool, text, equals);
        const char *value = text_pool_part(pool, text + equals + 1, length - equals - 1);
        if (!key || !value)
            return REMAT_NO_MEMORY;
        const remat_status status = property_set(pool->context, "lora", lora_properties, &fields, key, value);
        if (status == REMAT_INVALID)
            return remat_fail(pool->context, status, NULL, "lora: %s", remat_context_message(pool->context));
        REMAT_TRY(status);
        unsigned bit = 1;
        for (const property *p = lora_properties; strcmp(p->key, key) != 0; p++)
            bit <<= 1;
        if (given & bit)
            return remat_fail(pool->context, REMAT_INVALID, NULL, "lora: %s is given twice", key);
        given |= bit;
        text += length + (text[length] == ',');
    }
    tuning->uses_lora = true;
    tuning->rank = fields.rank;
    tuning->alpha = fields.alpha;
    tuning->dropout = fields.dropout;
    return read_patterns(pool, "lora: targets", fields.targets ? fields.targets : "", &tuning->targets);
}

/* ---- adapter_config.json ---- */

typedef struct adapter_reader {
    text_pool *pool;
    json_reader *reader;
    model_tuning *tuning;
    bool has_targets;
} adapter_reader;

static remat_status fail_field(const adapter_reader *a, const char *field, const char *text)
{
    remat_place place = json_field_place(a->reader, REMAT_NOWHERE, field);
    return remat_fail(a->pool->context, REMAT_BAD_INPUT, &place, "%s", text);
}

static remat_status read_number(const adapter_reader *a, const char *field, double most, double *value)
{
    json_token token;
    const char *end;
    REMAT_TRY(json_next(a->reader, &token));
    if ((token.kind == JSON_INTEGER || token.kind == JSON_REAL) && number_parse(token.text, &end, value) && !*end &&
        *value >= 0 && *value <= most)
        return REMAT_OK;
    return fail_field(a, field, "it must be a number from 0 on");
}

/* A text, or a list of them. PEFT takes a text for a regular expression, of which a plain name is one. */
static remat_status read_targets(adapter_reader *a)
{
    pattern_list *list = &a->tuning->targets;
    const char **items = text_pool_take(a->pool, MOST_PATTERNS, sizeof *items);
    json_token token;
    if (!items)
        return REMAT_NO_MEMORY;
    *list = (pattern_list){items, 0};
    a->has_targets = true;
    REMAT_TRY(json_next(a->reader, &token));
    const bool is_list = token.kind == JSON_ARRAY;
    for (;;) {
        if (is_list)
            REMAT_TRY(json_next(a->reader, &token));
        if (is_list && token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_STRING || !*token.text || list->count == MOST_PATTERNS ||
            strpbrk(token.text, "\\()[]|^$"))
            return fail_field(a, "target_modules", "it must be names of layers, not regular expressions");
        if (!(items[list->count++] = text_pool_text(a->pool, token.text)))
            return REMAT_NO_MEMORY;
        if (!is_list)
            return REMAT_OK;
    }
}

static remat_status read_type(const adapter_reader *a)
{
    const char *type = "";
    REMAT_TRY(json_read_text(a->reader, REMAT_NOWHERE, "peft_type", &type));
    return strcmp(type, "LORA") == 0 ? REMAT_OK : fail_field(a, "peft_type", "adapters must be of the type LORA");
}

/* Variants of LoRA compute something else: each has a flag. */
static remat_status check_variant(const adapter_reader *a, const char *key)
{
    json_token token;
    REMAT_TRY(json_next(a->reader, &token));
    return token.kind == JSON_TRUE ? fail_field(a, key, "this variant of LoRA is not supported") : REMAT_OK;
}

static remat_status read_key(adapter_reader *a, const char *key)
{
    if (strcmp(key, "r") == 0) {
        REMAT_TRY(json_read_count(a->reader, REMAT_NOWHERE, "r", &a->tuning->rank));
        return a->tuning->rank ? REMAT_OK : fail_field(a, "r", "it must be at least 1");
    }
    if (strcmp(key, "lora_alpha") == 0)
        return read_number(a, key, 1e9, &a->tuning->alpha);
    if (strcmp(key, "lora_dropout") == 0)
        return read_number(a, key, 0.999999, &a->tuning->dropout);
    if (strcmp(key, "target_modules") == 0)
        return read_targets(a);
    if (strcmp(key, "peft_type") == 0)
        return read_type(a);
    if (strcmp(key, "use_rslora") == 0 || strcmp(key, "use_dora") == 0)
        return check_variant(a, key);
    return json_skip(a->reader);
}

static remat_status read_adapter(adapter_reader *a)
{
    REMAT_TRY(json_read_open(a->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token token;
        char key[64];
        REMAT_TRY(json_next(a->reader, &token));
        if (token.kind == JSON_OBJECT_END)
            break;
        snprintf(key, sizeof key, "%.60s", token.text);
        REMAT_TRY(read_key(a, key));
    }
    json_token end;
    REMAT_TRY(json_next(a->reader, &end)); /* only blanks may follow */
    if (a->tuning->rank == 0)
        return fail_field(a, "r", "it is missing");
    return a->has_targets ? REMAT_OK : fail_field(a, "target_modules", "it is missing");
}

remat_status tuning_read_adapter_config(text_pool *pool, FILE *stream, const char *name, model_tuning *tuning)
{
    adapter_reader a = {.pool = pool, .tuning = tuning};
    tuning->uses_lora = true;
    tuning->file = text_pool_text(pool, name);
    if (!tuning->file)
        return REMAT_NO_MEMORY;
    tuning->rank = 0;
    tuning->alpha = 8; /* PEFT's defaults */
    tuning->dropout = 0;
    remat_status status = json_reader_create(pool->context, stream, name, &a.reader);
    if (status == REMAT_OK)
        status = read_adapter(&a);
    json_reader_destroy(a.reader);
    return status;
}

remat_status tuning_read_adapter(text_pool *pool, const char *folder, model_tuning *tuning)
{
    const char *path = text_pool_join(pool, (const char *const[]){folder, "/adapter_config.json", NULL});
    FILE *stream;
    if (!path)
        return REMAT_NO_MEMORY;
    REMAT_TRY(input_open(pool->context, path, &stream));
    remat_status status = tuning_read_adapter_config(pool, stream, path, tuning);
    fclose(stream);
    return status;
}
