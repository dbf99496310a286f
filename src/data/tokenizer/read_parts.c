/* All objects of the four lists are read alike, whatever the order of their keys; then their type says what they are. */
#include "data/tokenizer/read_parts.h"

#include "base/alloc.h"
#include "base/json_fields.h"
#include "data/tokenizer/read_template.h"
#include "data/tokenizer/unicode.h"

#include <string.h>

static const char *const list_names[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};

/* The keys of an object. Texts are copies; NULL where a key is missing. */
typedef struct part_fields {
    char *type, *pattern, *content, *prepend, *replacement, *behavior, *scheme;
    bool has_regex; /* the pattern is a regular expression */
    bool has_add_prefix_space, add_prefix_space, use_regex, split, invert, individual_digits;
    uint64_t start, stop;
    template_fields template;
} part_fields;

typedef struct part_reading {
    json_reader *reader;
    remat_context *context;
    remat_tokenizer *tokenizer;
    part_list_kind kind;
} part_reading;

static remat_status refuse(const part_reading *of, const char *key, const char *what, const char *value)
{
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    return remat_fail(of->context, REMAT_BAD_INPUT, &place, "%s '%.60s' is not supported", what, value);
}

/* ---- keys ---- */

static remat_status keep_text(const part_reading *of, const char *key, char **to)
{
    json_token token;
    REMAT_TRY(json_next(of->reader, &token));
    remat_text_release(of->context, *to);
    *to = NULL;
    if (token.kind == JSON_NULL)
        return REMAT_OK;
    if (token.kind != JSON_STRING) {
        remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be a string",
                          json_kind_name(token.kind));
    }
    *to = remat_text_copy(of->context, token.text);
    return *to ? REMAT_OK : REMAT_NO_MEMORY;
}

/* {"String": ...} or {"Regex": ...} */
static remat_status read_pattern(const part_reading *of, part_fields *fields)
{
    json_token token;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, "pattern", JSON_OBJECT));
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY)) {
        fields->has_regex = strcmp(token.text, "Regex") == 0;
        if (!fields->has_regex && strcmp(token.text, "String") != 0)
            return refuse(of, "pattern", "the kind of pattern", token.text);
        REMAT_TRY(keep_text(of, "pattern", &fields->pattern));
    }
    return REMAT_OK;
}

static remat_status read_part(const part_reading *of);

static remat_status read_list(const part_reading *of, const char *key)
{
    json_token token;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, key, JSON_ARRAY));
    while (JSON_NEXT_IS(of->reader, &token, JSON_OBJECT))
        REMAT_TRY(read_part(of));
    if (token.kind == JSON_ARRAY_END)
        return REMAT_OK;
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    return remat_fail(of->context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be an object",
                      json_kind_name(token.kind));
}

/* A flag, or null, which is the default. */
static remat_status read_flag(const part_reading *of, const char *key, bool *flag)
{
    json_token token;
    REMAT_TRY(json_next(of->reader, &token));
    if (token.kind == JSON_TRUE || token.kind == JSON_FALSE)
        *flag = token.kind == JSON_TRUE;
    else if (token.kind != JSON_NULL) {
        remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be true or false",
                          json_kind_name(token.kind));
    }
    return REMAT_OK;
}

static remat_status read_key(const part_reading *of, part_fields *fields, const char *key)
{
    const struct {
        const char *key;
        char **text;
    } texts[] = {{"type", &fields->type},         {"content", &fields->content},
                 {"prepend", &fields->prepend},   {"replacement", &fields->replacement},
                 {"behavior", &fields->behavior}, {"prepend_scheme", &fields->scheme}};
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"add_prefix_space", &fields->add_prefix_space},
                 {"use_regex", &fields->use_regex},
                 {"split", &fields->split},
                 {"invert", &fields->invert},
                 {"individual_digits", &fields->individual_digits}};
    static const char *const lists[] = {"normalizers", "pretokenizers", "processors", "decoders"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(key, texts[i].key) == 0)
            return keep_text(of, texts[i].key, texts[i].text);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(key, flags[i].key) == 0) {
            fields->has_add_prefix_space = fields->has_add_prefix_space || i == 0;
            return read_flag(of, flags[i].key, flags[i].flag);
        }
    if (strcmp(key, lists[of->kind]) == 0)
        return read_list(of, lists[of->kind]);
    if (strcmp(key, "pattern") == 0)
        return read_pattern(of, fields);
    if (strcmp(key, "start") == 0 || strcmp(key, "stop") == 0)
        return json_read_count(of->reader, REMAT_NOWHERE, key[2] == 'a' ? "start" : "stop",
                               key[2] == 'a' ? &fields->start : &fields->stop);
    if (strcmp(key, "single") == 0)
        return template_read_single(of->reader, &fields->template);
    if (strcmp(key, "special_tokens") == 0)
        return template_read_tokens(of->reader, &fields->template);
    return json_skip(of->reader); /* what has no effect on ids: trim_offsets, pair, str_rep */
}

/* ---- parts ---- */

/* A text as a pattern that matches just it. */
static remat_status escape(remat_context *context, const char *text, char **pattern)
{
    size_t length = strlen(text), at = 0;
    char *made = *pattern = remat_alloc(context, 2 * length + 1, 1);
    if (!made)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < length; i++) {
        if (text[i] > ' ' && strchr("\\.[]{}()*+?^$|-#&~", text[i]))
            made[at++] = '\\';
        made[at++] = text[i];
    }
    made[at] = '\0';
    return REMAT_OK;
}

static remat_status compile(remat_context *context, const char *text, bool literal, const remat_place *place,
                            split_pattern **pattern)
{
    char *escaped = NULL;
    if (literal)
        REMAT_TRY(escape(context, text, &escaped));
    remat_status status = split_pattern_compile(context, literal ? escaped : text, place, pattern);
    if (literal)
        remat_release(context, escaped, 2 * strlen(text) + 1, 1);
    return status;
}

remat_status tokenizer_add_part(remat_context *context, part_list *list, token_part part, const char *pattern,
                                bool literal, const char *content, const remat_place *place)
{
    REMAT_TRY(remat_grow(context, (void **)&list->parts, &list->capacity, list->count + 1, sizeof *list->parts));
    if (pattern)
        REMAT_TRY(compile(context, pattern, literal, place, &part.pattern));
    list->parts[list->count++] = part; /* the list releases it from here on */
    if (!content)
        return REMAT_OK;
    list->parts[list->count - 1].content = remat_text_copy(context, content);
    return list->parts[list->count - 1].content ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status need(const part_reading *of, const char *key, const char *text)
{
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, list_names[of->kind]);
    if (text)
        return REMAT_OK;
    return remat_fail(of->context, REMAT_BAD_INPUT, &place, "it has no '%s'", key);
}

static remat_status add(const part_reading *of, token_part part, const char *pattern, bool literal, const char *content)
{
    part_list *lists[] = {&of->tokenizer->normalizers, &of->tokenizer->pre_tokenizers, NULL, &of->tokenizer->decoders};
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "pattern");
    return tokenizer_add_part(of->context, lists[of->kind], part, pattern, literal, content, &place);
}

/* One character as UTF-8: the mark of a blank, or what is stripped. */
static remat_status need_character(const part_reading *of, const char *key, const char *text)
{
    REMAT_TRY(need(of, key, text));
    uint32_t code;
    size_t bytes = *text ? unicode_take((const unsigned char *)text, &code) : 0;
    if (bytes && text[bytes] == '\0')
        return REMAT_OK;
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    return remat_fail(of->context, REMAT_BAD_INPUT, &place, "'%.60s' is not allowed; it must be one character", text);
}

static remat_status add_metaspace(const part_reading *of, const part_fields *fields)
{
    static const char *const schemes[] = {"always", "first", "never"};
    token_part part = {.kind = PART_METASPACE, .splits = fields->split};
    REMAT_TRY(need_character(of, "replacement", fields->replacement));
    if (fields->has_add_prefix_space && !fields->add_prefix_space)
        part.scheme = PREPEND_NEVER;
    if (fields->scheme) {
        size_t i = 0;
        while (i < 3 && strcmp(fields->scheme, schemes[i]) != 0)
            i++;
        if (i == 3)
            return refuse(of, "prepend_scheme", "the scheme", fields->scheme);
        part.scheme = (prepend_scheme)i;
    }
    return add(of, part, NULL, false, fields->replacement);
}

static remat_status add_split(const part_reading *of, const part_fields *fields)
{
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                            "Contiguous"};
    token_part part = {.kind = PART_SPLIT, .invert = fields->invert};
    REMAT_TRY(need(of, "pattern", fields->pattern));
    REMAT_TRY(need(of, "behavior", fields->behavior));
    size_t i = 0;
    while (i < 5 && strcmp(fields->behavior, behaviors[i]) != 0)
        i++;
    if (i == 5)
        return refuse(of, "behavior", "the behavior", fields->behavior);
    part.behavior = (split_behavior)i;
    return add(of, part, fields->pattern, !fields->has_regex, NULL);
}

static remat_status add_replace(const part_reading *of, const part_fields *fields)
{
    REMAT_TRY(need(of, "pattern", fields->pattern));
    REMAT_TRY(need(of, "content", fields->content));
    return add(of, (token_part){.kind = PART_REPLACE}, fields->pattern, !fields->has_regex, fields->content);
}

static remat_status add_normalizer(const part_reading *of, const part_fields *fields)
{
    if (strcmp(fields->type, "NFC") == 0)
        return add(of, (token_part){.kind = PART_NFC}, NULL, false, NULL);
    if (strcmp(fields->type, "Replace") == 0)
        return add_replace(of, fields);
    if (strcmp(fields->type, "Prepend") != 0)
        return refuse(of, "normalizer", "the type", fields->type);
    REMAT_TRY(need(of, "prepend", fields->prepend));
    return add(of, (token_part){.kind = PART_PREPEND}, NULL, false, fields->prepend);
}

static remat_status add_pre_tokenizer(const part_reading *of, const part_fields *fields)
{
    const part_list *list = &of->tokenizer->pre_tokenizers;
    if (list->count && list->parts[list->count - 1].kind == PART_BYTE_LEVEL)
        return refuse(of, "pre_tokenizer", "behind ByteLevel, the type", fields->type);
    if (strcmp(fields->type, "Split") == 0)
        return add_split(of, fields);
    if (strcmp(fields->type, "Metaspace") == 0)
        return add_metaspace(of, fields);
    if (strcmp(fields->type, "Digits") == 0)
        return add(
            of,
            (token_part){.kind = PART_SPLIT, .behavior = fields->individual_digits ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS},
            "\\p{N}", false, NULL);
    if (strcmp(fields->type, "ByteLevel") != 0)
        return refuse(of, "pre_tokenizer", "the type", fields->type);
    token_part part = {
        .kind = PART_BYTE_LEVEL, .add_prefix_space = fields->add_prefix_space, .behavior = SPLIT_ISOLATED};
    return add(of, part, fields->use_regex ? GPT2_PATTERN : NULL, false, NULL);
}

static remat_status add_decoder(const part_reading *of, const part_fields *fields)
{
    if (strcmp(fields->type, "ByteLevel") == 0)
        return add(of, (token_part){.kind = PART_BYTE_LEVEL}, NULL, false, NULL);
    if (strcmp(fields->type, "Metaspace") == 0)
        return add_metaspace(of, fields);
    if (strcmp(fields->type, "Replace") == 0)
        return add_replace(of, fields);
    if (strcmp(fields->type, "ByteFallback") == 0)
        return add(of, (token_part){.kind = PART_BYTE_FALLBACK}, NULL, false, NULL);
    if (strcmp(fields->type, "Fuse") == 0)
        return add(of, (token_part){.kind = PART_FUSE}, NULL, false, NULL);
    if (strcmp(fields->type, "Strip") != 0)
        return refuse(of, "decoder", "the type", fields->type);
    REMAT_TRY(need_character(of, "content", fields->content));
    uint64_t start = fields->start < UINT32_MAX ? fields->start : UINT32_MAX;
    uint64_t stop = fields->stop < UINT32_MAX ? fields->stop : UINT32_MAX;
    return add(of, (token_part){.kind = PART_STRIP, .start = (uint32_t)start, .stop = (uint32_t)stop}, NULL, false,
               fields->content);
}

static remat_status add_part(const part_reading *of, const part_fields *fields)
{
    REMAT_TRY(need(of, "type", fields->type));
    if (strcmp(fields->type, "Sequence") == 0)
        return REMAT_OK; /* what it lists was added when it was read */
    switch (of->kind) {
    case LIST_NORMALIZER: return add_normalizer(of, fields);
    case LIST_PRE_TOKENIZER: return add_pre_tokenizer(of, fields);
    case LIST_DECODER: return add_decoder(of, fields);
    case LIST_POST_PROCESSOR: break;
    }
    if (strcmp(fields->type, "ByteLevel") == 0)
        return REMAT_OK; /* it changes where tokens begin, not the tokens */
    if (strcmp(fields->type, "TemplateProcessing") != 0)
        return refuse(of, "post_processor", "the type", fields->type);
    return template_apply(of->reader, &fields->template, of->tokenizer);
}

/* ---- objects ---- */

static remat_status read_keys(const part_reading *of, part_fields *fields)
{
    json_token token;
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY))
        REMAT_TRY(read_key(of, fields, token.text));
    return add_part(of, fields);
}

/* Behind the opening brace. */
static remat_status read_part(const part_reading *of)
{
    part_fields fields = {.add_prefix_space = true, .use_regex = true, .split = true};
    remat_status status = read_keys(of, &fields);
    char *const texts[] = {fields.type,        fields.pattern,  fields.content, fields.prepend,
                           fields.replacement, fields.behavior, fields.scheme};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        remat_text_release(of->context, texts[i]);
    template_end(of->context, &fields.template);
    return status;
}

remat_status tokenizer_read_parts(json_reader *reader, remat_tokenizer *tokenizer, part_list_kind kind)
{
    const part_reading of = {reader, tokenizer->context, tokenizer, kind};
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind == JSON_NULL)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, list_names[kind]);
    if (token.kind != JSON_OBJECT)
        return remat_fail(of.context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be an object",
                          json_kind_name(token.kind));
    return read_part(&of);
}
