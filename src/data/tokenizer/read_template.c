#include "data/tokenizer/read_template.h"

#include "base/alloc.h"
#include "base/json_fields.h"

#include <string.h>

remat_status token_list_add(remat_context *context, token_list *list, uint32_t id)
{
    REMAT_TRY(remat_grow(context, (void **)&list->ids, &list->capacity, list->count + 1, sizeof *list->ids));
    list->ids[list->count++] = id;
    return REMAT_OK;
}

void template_end(remat_context *context, template_fields *fields)
{
    for (size_t i = 0; i < fields->item_count; i++)
        remat_text_release(context, fields->items[i].name);
    for (size_t i = 0; i < fields->token_count; i++) {
        remat_text_release(context, fields->tokens[i].name);
        remat_release(context, fields->tokens[i].ids.ids, fields->tokens[i].ids.capacity, sizeof(uint32_t));
    }
    remat_release(context, fields->items, fields->item_capacity, sizeof *fields->items);
    remat_release(context, fields->tokens, fields->token_capacity, sizeof *fields->tokens);
}

static remat_status add_item(remat_context *context, template_fields *fields, const char *name)
{
    REMAT_TRY(remat_grow(context, (void **)&fields->items, &fields->item_capacity, fields->item_count + 1,
                         sizeof *fields->items));
    char *copy = name ? remat_text_copy(context, name) : NULL;
    if (name && !copy)
        return REMAT_NO_MEMORY;
    fields->items[fields->item_count++] = (template_item){copy};
    return REMAT_OK;
}

/* {"id": "A", "type_id": 0} */
static remat_status read_item(json_reader *reader, template_fields *fields, bool is_token)
{
    remat_context *context = json_reader_context(reader);
    json_token token;
    const char *name = "";
    bool found = false;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "single", JSON_OBJECT));
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        if (strcmp(token.text, "id") != 0 || found) {
            REMAT_TRY(json_skip(reader));
            continue;
        }
        REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "single", &name));
        found = true;
        if (!is_token && strcmp(name, "A") != 0)
            break;
        REMAT_TRY(add_item(context, fields, is_token ? name : NULL));
    }
    if (token.kind == JSON_OBJECT_END && found)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "single");
    return remat_fail(context, REMAT_BAD_INPUT, &place, "a sequence of one text must be A");
}

remat_status template_read_single(json_reader *reader, template_fields *fields)
{
    json_token token;
    remat_place place;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "single", JSON_ARRAY));
    while (JSON_NEXT_IS(reader, &token, JSON_OBJECT))
        while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
            bool is_token = strcmp(token.text, "SpecialToken") == 0;
            place = json_field_place(reader, REMAT_NOWHERE, "single");
            if (!is_token && strcmp(token.text, "Sequence") != 0)
                return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place,
                                  "the key '%.60s' is unknown; it must be SpecialToken or Sequence", token.text);
            REMAT_TRY(read_item(reader, fields, is_token));
        }
    place = json_field_place(reader, REMAT_NOWHERE, "single");
    if (token.kind == JSON_ARRAY_END)
        return REMAT_OK;
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "%s is not allowed; it must be an object",
                      json_kind_name(token.kind));
}

static remat_status read_ids(json_reader *reader, token_list *ids)
{
    json_token token;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "ids", JSON_ARRAY));
    while (JSON_NEXT_IS(reader, &token, JSON_INTEGER) && token.in_range) {
        if (token.integer > INT32_MAX)
            break;
        REMAT_TRY(token_list_add(json_reader_context(reader), ids, (uint32_t)token.integer));
    }
    if (token.kind == JSON_ARRAY_END)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "ids");
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "it must have ids from 0 to 2147483647");
}

remat_status template_read_tokens(json_reader *reader, template_fields *fields)
{
    remat_context *context = json_reader_context(reader);
    json_token token;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "special_tokens", JSON_OBJECT));
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        REMAT_TRY(remat_grow(context, (void **)&fields->tokens, &fields->token_capacity, fields->token_count + 1,
                             sizeof *fields->tokens));
        template_token *named = &fields->tokens[fields->token_count];
        *named = (template_token){.name = remat_text_copy(context, token.text)};
        if (!named->name)
            return REMAT_NO_MEMORY;
        fields->token_count++;
        REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "special_tokens", JSON_OBJECT));
        while (JSON_NEXT_IS(reader, &token, JSON_KEY))
            REMAT_TRY(strcmp(token.text, "ids") == 0 ? read_ids(reader, &named->ids) : json_skip(reader));
    }
    return REMAT_OK;
}

static const template_token *find_token(const template_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->token_count; i++)
        if (strcmp(fields->tokens[i].name, name) == 0)
            return &fields->tokens[i];
    return NULL;
}

remat_status template_apply(json_reader *reader, const template_fields *fields, remat_tokenizer *tokenizer)
{
    remat_context *context = tokenizer->context;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "single");
    token_list before = {0};
    size_t texts = 0;
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < fields->item_count && status == REMAT_OK; i++) {
        const char *name = fields->items[i].name;
        const template_token *named = name ? find_token(fields, name) : NULL;
        texts += name == NULL;
        if (name && !named)
            status = remat_fail(context, REMAT_BAD_INPUT, &place, "'%.60s' is not in special_tokens", name);
        for (size_t j = 0; named && j < named->ids.count && status == REMAT_OK; j++)
            status = token_list_add(context, texts ? &tokenizer->behind : &before, named->ids.ids[j]);
    }
    if (status == REMAT_OK && texts != 1)
        status = remat_fail(context, REMAT_BAD_INPUT, &place, "the text must be in the template once");
    /* A template around another's: what it puts before comes first. */
    for (size_t i = 0; i < tokenizer->before.count && status == REMAT_OK; i++)
        status = token_list_add(context, &before, tokenizer->before.ids[i]);
    remat_release(context, tokenizer->before.ids, tokenizer->before.capacity, sizeof(uint32_t));
    tokenizer->before = before;
    return status;
}
