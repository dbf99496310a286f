#include "data/tokenizer/tokenizer_config.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static remat_status keep(remat_context *context, const char *text, char **to)
{
    remat_text_release(context, *to);
    *to = remat_text_copy(context, text);
    return *to ? REMAT_OK : REMAT_NO_MEMORY;
}

/* "..." or {"content": "..."} or null */
static remat_status read_token(json_reader *reader, char **to)
{
    remat_context *context = json_reader_context(reader);
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind == JSON_STRING)
        return keep(context, token.text, to);
    if (token.kind != JSON_OBJECT)
        return json_skip_rest(reader, &token);
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        const char *content = "";
        if (strcmp(token.text, "content") != 0) {
            REMAT_TRY(json_skip(reader));
            continue;
        }
        REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "content", &content));
        REMAT_TRY(keep(context, content, to));
    }
    return REMAT_OK;
}

/* {"name": "default", "template": "..."}, behind the brace. */
static remat_status read_named(json_reader *reader, char **to)
{
    remat_context *context = json_reader_context(reader);
    json_token token;
    char *text = NULL;
    bool is_default = false;
    remat_status status = REMAT_OK;
    while (status == REMAT_OK && (status = json_next(reader, &token)) == REMAT_OK && token.kind == JSON_KEY) {
        const char *value = "";
        bool is_name = strcmp(token.text, "name") == 0;
        if (!is_name && strcmp(token.text, "template") != 0) {
            status = json_skip(reader);
            continue;
        }
        status = json_read_text(reader, REMAT_NOWHERE, "chat_template", &value);
        if (status == REMAT_OK && is_name)
            is_default = strcmp(value, "default") == 0;
        else if (status == REMAT_OK)
            status = keep(context, value, &text);
    }
    if (status == REMAT_OK && is_default && text)
        status = keep(context, text, to);
    remat_text_release(context, text);
    return status;
}

static remat_status read_template(json_reader *reader, char **to)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    if (token.kind == JSON_STRING)
        return keep(json_reader_context(reader), token.text, to);
    if (token.kind != JSON_ARRAY)
        return json_skip_rest(reader, &token);
    while (JSON_NEXT_IS(reader, &token, JSON_OBJECT))
        REMAT_TRY(read_named(reader, to));
    return REMAT_OK;
}

static remat_status read_config(json_reader *reader, tokenizer_config *config)
{
    json_token token;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        if (strcmp(token.text, "bos_token") == 0)
            REMAT_TRY(read_token(reader, &config->bos_token));
        else if (strcmp(token.text, "eos_token") == 0)
            REMAT_TRY(read_token(reader, &config->eos_token));
        else if (strcmp(token.text, "chat_template") == 0)
            REMAT_TRY(read_template(reader, &config->chat_template));
        else
            REMAT_TRY(json_skip(reader));
    }
    return json_next(reader, &token);
}

static remat_status read_json(remat_context *context, const char *path, tokenizer_config *config)
{
    FILE *stream;
    json_reader *reader = NULL;
    bool exists;
    REMAT_TRY(input_exists(context, path, &exists));
    if (!exists)
        return REMAT_OK;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = json_reader_create(context, stream, path, &reader);
    if (status == REMAT_OK)
        status = read_config(reader, config);
    if (status == REMAT_OK && config->chat_template)
        status = keep(context, path, &config->template_name);
    json_reader_destroy(reader);
    fclose(stream);
    return status;
}

static remat_status read_stream(remat_context *context, FILE *stream, const char *path, char **text, size_t *capacity)
{
    enum { PART = 1 << 14 };
    size_t length = 0;
    for (size_t got = 1; got; length += got) {
        REMAT_TRY(input_check_length(context, path, length));
        REMAT_TRY(remat_grow(context, (void **)text, capacity, length + PART + 1, 1));
        got = fread(*text + length, 1, PART, stream);
        (*text)[length + got] = '\0';
    }
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    return ferror(stream) ? remat_fail(context, REMAT_IO, &place, "reading failed: %s", strerror(errno)) : REMAT_OK;
}

/* A template in a file of its own stands for the one in the configuration. */
static remat_status read_jinja(remat_context *context, const char *path, tokenizer_config *config)
{
    FILE *stream;
    char *text = NULL;
    size_t capacity = 0;
    bool exists;
    REMAT_TRY(input_exists(context, path, &exists));
    if (!exists)
        return REMAT_OK;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = read_stream(context, stream, path, &text, &capacity);
    fclose(stream);
    if (status == REMAT_OK)
        status = keep(context, text, &config->chat_template);
    if (status == REMAT_OK)
        status = keep(context, path, &config->template_name);
    remat_release(context, text, capacity, 1);
    return status;
}

remat_status tokenizer_config_read(remat_context *context, const char *folder, tokenizer_config *config)
{
    static const char json[] = "/tokenizer_config.json", jinja[] = "/chat_template.jinja";
    size_t bytes = strlen(folder) + sizeof json;
    char *path = remat_alloc(context, bytes, 1);
    if (!path)
        return REMAT_NO_MEMORY;
    snprintf(path, bytes, "%s%s", folder, json);
    remat_status status = read_json(context, path, config);
    snprintf(path, bytes, "%s%s", folder, jinja);
    if (status == REMAT_OK)
        status = read_jinja(context, path, config);
    remat_release(context, path, bytes, 1);
    return status;
}

void tokenizer_config_end(remat_context *context, tokenizer_config *config)
{
    remat_text_release(context, config->bos_token);
    remat_text_release(context, config->eos_token);
    remat_text_release(context, config->chat_template);
    remat_text_release(context, config->template_name);
    *config = (tokenizer_config){0};
}
