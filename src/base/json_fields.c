#include "base/json_fields.h"

#include <string.h>

remat_place json_field_place(const json_reader *reader, uint64_t layer, const char *field)
{
    remat_place place = json_place(reader);
    place.layer = layer;
    place.field = field;
    return place;
}

static remat_status wrong_kind(const json_reader *reader, uint64_t layer, const char *field, const json_token *token,
                               const char *wanted)
{
    remat_place place = json_field_place(reader, layer, field);
    if (token->kind == JSON_INTEGER || token->kind == JSON_REAL)
        return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "%.40s is not allowed; it must be %s",
                          token->text, wanted);
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "%s is not allowed; it must be %s",
                      json_kind_name(token->kind), wanted);
}

remat_status json_read_count(json_reader *reader, uint64_t layer, const char *field, uint64_t *value)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (!token.in_range)
        return wrong_kind(reader, layer, field, &token, "a whole number from 0 to 2^63 - 1");
    *value = token.integer;
    return REMAT_OK;
}

remat_status json_read_bool(json_reader *reader, uint64_t layer, const char *field, bool *value)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind != JSON_TRUE && token.kind != JSON_FALSE)
        return wrong_kind(reader, layer, field, &token, "true or false");
    *value = token.kind == JSON_TRUE;
    return REMAT_OK;
}

remat_status json_read_text(json_reader *reader, uint64_t layer, const char *field, const char **text)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind != JSON_STRING)
        return wrong_kind(reader, layer, field, &token, "a string");
    *text = token.text;
    return REMAT_OK;
}

remat_status json_read_open(json_reader *reader, uint64_t layer, const char *field, json_kind kind)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind != kind)
        return wrong_kind(reader, layer, field, &token, json_kind_name(kind));
    return REMAT_OK;
}

remat_status json_read_format(json_reader *reader, const char *format)
{
    const char *text = "";
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "format", &text));
    if (strcmp(text, format) == 0)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "format");
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "'%.60s' was found; it must be '%s'", text,
                      format);
}

remat_status json_read_version(json_reader *reader, uint64_t version)
{
    uint64_t value = 0;
    REMAT_TRY(json_read_count(reader, REMAT_NOWHERE, "version", &value));
    if (value == version)
        return REMAT_OK;
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "version");
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place,
                      "%llu is unknown; this version of Remat reads version %llu", (unsigned long long)value,
                      (unsigned long long)version);
}

remat_status json_field_once(const json_reader *reader, uint64_t layer, const char *field, unsigned which,
                             uint64_t *seen)
{
    if (*seen >> which & 1) {
        remat_place place = json_field_place(reader, layer, field);
        return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "there twice; once is enough");
    }
    *seen |= (uint64_t)1 << which;
    return REMAT_OK;
}

remat_status json_field_unknown(json_reader *reader, uint64_t layer, const char *field)
{
    remat_place place = json_field_place(reader, layer, NULL);
    remat_warn(json_reader_context(reader), &place, "the key '%.60s' is unknown and ignored", field);
    return json_skip(reader);
}
