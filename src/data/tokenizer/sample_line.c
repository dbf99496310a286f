#include "data/tokenizer/sample_line.h"

#include "base/alloc.h"
#include "base/json_fields.h"

#include <stdio.h>
#include <string.h>

void sample_line_end(remat_context *context, sample_line *sample)
{
    remat_text_release(context, sample->text);
    remat_text_release(context, sample->prompt);
    remat_text_release(context, sample->completion);
    for (size_t i = 0; i < sample->message_count; i++) {
        remat_text_release(context, sample->messages[i].role);
        remat_text_release(context, sample->messages[i].content);
    }
    remat_release(context, sample->messages, sample->message_capacity, sizeof *sample->messages);
    *sample = (sample_line){0};
}

static remat_status read_text(json_reader *reader, const char *key, const char **to)
{
    const char *text = "";
    remat_context *context = json_reader_context(reader);
    remat_place place = json_field_place(reader, REMAT_NOWHERE, key);
    if (*to)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "there twice; once is enough");
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, key, &text));
    *to = remat_text_copy(context, text);
    return *to ? REMAT_OK : REMAT_NO_MEMORY;
}

/* {"role": ..., "content": ...}, behind the brace. */
static remat_status read_message(json_reader *reader, sample_line *sample)
{
    remat_context *context = json_reader_context(reader);
    json_token token;
    REMAT_TRY(remat_grow(context, (void **)&sample->messages, &sample->message_capacity, sample->message_count + 1,
                         sizeof *sample->messages));
    chat_message *message = &sample->messages[sample->message_count++];
    *message = (chat_message){0};
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        if (strcmp(token.text, "role") == 0)
            REMAT_TRY(read_text(reader, "role", &message->role));
        else if (strcmp(token.text, "content") == 0)
            REMAT_TRY(read_text(reader, "content", &message->content));
        else
            REMAT_TRY(json_skip(reader));
    }
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "messages");
    if (!message->role || !message->content)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "message %zu has no '%s'", sample->message_count,
                          message->role ? "content" : "role");
    return REMAT_OK;
}

static remat_status read_messages(json_reader *reader, sample_line *sample)
{
    json_token token;
    remat_context *context = json_reader_context(reader);
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "messages", JSON_ARRAY));
    while (JSON_NEXT_IS(reader, &token, JSON_OBJECT))
        REMAT_TRY(read_message(reader, sample));
    remat_place place = json_field_place(reader, REMAT_NOWHERE, "messages");
    if (token.kind != JSON_ARRAY_END)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be an object",
                          json_kind_name(token.kind));
    return sample->message_count ? REMAT_OK : remat_fail(context, REMAT_BAD_INPUT, &place, "there are none");
}

static remat_status check_keys(json_reader *reader, const sample_line *sample)
{
    remat_context *context = json_reader_context(reader);
    remat_place place = json_place(reader);
    if (sample->prompt && !sample->completion)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "the sample has a 'prompt' and no 'completion'");
    if (sample->completion && !sample->prompt)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "the sample has a 'completion' and no 'prompt'");
    int kinds = (sample->text != NULL) + (sample->prompt != NULL) + (sample->messages != NULL);
    if (kinds == 0)
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "this is no sample: it needs 'text', or 'prompt' and 'completion', or 'messages'");
    if (kinds > 1)
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "the sample has more than one of 'text', 'prompt' and 'messages'");
    return REMAT_OK;
}

static remat_status read_object(json_reader *reader, sample_line *sample)
{
    json_token token;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    while (JSON_NEXT_IS(reader, &token, JSON_KEY)) {
        if (strcmp(token.text, "text") == 0)
            REMAT_TRY(read_text(reader, "text", (const char **)&sample->text));
        else if (strcmp(token.text, "prompt") == 0)
            REMAT_TRY(read_text(reader, "prompt", (const char **)&sample->prompt));
        else if (strcmp(token.text, "completion") == 0)
            REMAT_TRY(read_text(reader, "completion", (const char **)&sample->completion));
        else if (strcmp(token.text, "messages") == 0 && !sample->messages)
            REMAT_TRY(read_messages(reader, sample));
        else
            REMAT_TRY(json_skip(reader));
    }
    REMAT_TRY(json_next(reader, &token));
    return check_keys(reader, sample);
}

remat_status sample_line_read(remat_context *context, char *text, size_t length, const char *file, uint64_t line,
                              sample_line *sample)
{
    json_reader *reader = NULL;
    *sample = (sample_line){0};
    FILE *stream = fmemopen(text, length, "r");
    if (!stream)
        return remat_fail(context, REMAT_NO_MEMORY, NULL, "out of memory");
    remat_status status = json_reader_create(context, stream, file, &reader);
    if (status == REMAT_OK) {
        json_reader_set_line(reader, line);
        status = read_object(reader, sample);
    }
    json_reader_destroy(reader);
    fclose(stream);
    if (status != REMAT_OK)
        sample_line_end(context, sample);
    return status;
}
