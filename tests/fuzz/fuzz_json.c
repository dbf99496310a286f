/* The JSON reader against Jansson, and against what it reads of its own text written again. */
#include "fuzz/fuzz.h"

#include "base/json_reader.h"
#include "base/output.h"
#include "support/jansson_verdict.h"

typedef struct json_seen {
    bool too_large; /* a number that Jansson does not hold */
    bool too_deep;
} json_seen;

static void write_token(output *out, const json_token *token, bool *comma)
{
    bool closes = token->kind == JSON_OBJECT_END || token->kind == JSON_ARRAY_END;
    if (*comma && !closes)
        output_text(out, ",");
    *comma = token->kind != JSON_OBJECT && token->kind != JSON_ARRAY && token->kind != JSON_KEY;
    switch (token->kind) {
    case JSON_OBJECT: output_text(out, "{"); break;
    case JSON_OBJECT_END: output_text(out, "}"); break;
    case JSON_ARRAY: output_text(out, "["); break;
    case JSON_ARRAY_END: output_text(out, "]"); break;
    case JSON_KEY:
    case JSON_STRING: output_quoted(out, token->text); break;
    case JSON_INTEGER:
    case JSON_REAL: output_text(out, token->text); break;
    case JSON_TRUE: output_text(out, "true"); break;
    case JSON_FALSE: output_text(out, "false"); break;
    case JSON_NULL: output_text(out, "null"); break;
    case JSON_END: break;
    }
    if (token->kind == JSON_KEY)
        output_text(out, ":");
}

/* Reads to the end and writes what was read. */
static remat_status rewrite(remat_context *context, const void *data, size_t size, fuzz_output *written,
                            json_seen *seen)
{
    FILE *stream = fuzz_stream(data, size);
    json_reader *reader;
    FUZZ_CHECK(json_reader_create(context, stream, "text", &reader) == REMAT_OK);
    fuzz_output_begin(written);
    static output out;
    output_begin(&out, context, written->stream);
    json_token token = {.kind = JSON_NULL};
    remat_status status;
    bool comma = false;
    while ((status = json_next(reader, &token)) == REMAT_OK && token.kind != JSON_END) {
        if (token.kind == JSON_INTEGER && token.in_range)
            FUZZ_CHECK(token.integer == strtoull(token.text[0] == '-' ? "0" : token.text, NULL, 10));
        seen->too_large |= (token.kind == JSON_INTEGER && !token.in_range) || token.kind == JSON_REAL;
        write_token(&out, &token, &comma);
    }
    seen->too_deep = status != REMAT_OK && strstr(remat_context_message(context), "nested deeper");
    json_reader_destroy(reader);
    fclose(stream);
    FUZZ_CHECK(output_end(&out) == REMAT_OK);
    fuzz_output_end(written);
    return status;
}

/* Skipping a value must judge it as reading it does. */
static remat_status skip(remat_context *context, const void *data, size_t size)
{
    FILE *stream = fuzz_stream(data, size);
    json_reader *reader;
    FUZZ_CHECK(json_reader_create(context, stream, "text", &reader) == REMAT_OK);
    remat_status status = json_skip(reader);
    json_token token;
    if (status == REMAT_OK)
        status = json_next(reader, &token);
    json_reader_destroy(reader);
    fclose(stream);
    return status;
}

void fuzz_json(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    fuzz_output first, second;
    json_seen seen = {0};
    remat_status status = rewrite(context, data, size, &first, &seen);
    const size_t mark =
        size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a byte order mark, which Jansson refuses */
    bool ours = fuzz_accepted(context, status), theirs = jansson_accepts((const char *)data + mark, size - mark);
    if (ours != theirs && !(size && memchr(data, '\0', size))) /* Jansson overlooks a NUL byte behind a number */
        FUZZ_CHECK(ours ? seen.too_large : seen.too_deep);
    FUZZ_CHECK(skip(context, data, size) == status);
    if (ours) {
        FUZZ_CHECK(rewrite(context, first.text, first.length, &second, &seen) == REMAT_OK);
        FUZZ_CHECK(strcmp(first.text, second.text) == 0);
        free(second.text);
    }
    free(first.text);
    fuzz_end(context);
}
