#include "base/json_reader.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/input.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

enum {
    BUFFER_BYTES = 1 << 16,
    DEEPEST = 64, /* nesting: the formats need 5 */
    LONGEST_STRING = 16 << 20,
};

/* What may come next. */
typedef enum expectation {
    EXPECT_VALUE,        /* anywhere a value must stand */
    EXPECT_VALUE_OR_END, /* after [ */
    EXPECT_KEY_OR_END,   /* after { */
    EXPECT_COMMA_OR_END, /* after a value inside something */
    EXPECT_NOTHING,      /* after the outermost value */
} expectation;

struct json_reader {
    remat_context *context;
    FILE *stream;
    const char *name;
    uint64_t line, token_line;
    uint64_t bytes; /* read since the last value */
    bool began;
    expectation expected;
    unsigned depth;
    bool in_object[DEEPEST];
    char *text; /* of the current token */
    size_t text_length, text_capacity;
    size_t at, filled;
    unsigned char buffer[BUFFER_BYTES];
};

remat_status json_reader_create(remat_context *context, FILE *stream, const char *name, json_reader **reader)
{
    json_reader *made = *reader = remat_alloc(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    memset(made, 0, offsetof(json_reader, buffer));
    made->context = context;
    made->stream = stream;
    made->name = name;
    made->line = made->token_line = 1;
    return REMAT_OK;
}

void json_reader_destroy(json_reader *reader)
{
    if (!reader)
        return;
    remat_release(reader->context, reader->text, reader->text_capacity, 1);
    remat_release(reader->context, reader, 1, sizeof *reader);
}

void json_reader_set_line(json_reader *reader, uint64_t line)
{
    reader->line = reader->token_line = line;
}

remat_place json_place(const json_reader *reader)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = reader->name;
    place.line = reader->token_line;
    return place;
}

const char *json_kind_name(json_kind kind)
{
    switch (kind) {
    case JSON_END: return "the end of the text";
    case JSON_OBJECT: return "an object";
    case JSON_OBJECT_END: return "'}'";
    case JSON_ARRAY: return "an array";
    case JSON_ARRAY_END: return "']'";
    case JSON_KEY: return "a key";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number with a fraction or exponent";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "something else";
}

/* ---- characters ---- */

static bool refill(json_reader *reader)
{
    if (reader->at < reader->filled)
        return true;
    /* Schedules may have any length, but blanks without an end are no text. Where there is too much, the text seems to end:
     * nothing waits for the rest of it. */
    reader->filled =
        reader->bytes > INPUT_MOST_BYTES ? 0 : fread(reader->buffer, 1, sizeof reader->buffer, reader->stream);
    reader->bytes += reader->filled;
    reader->at = 0;
    if (!reader->began && reader->filled >= 3 && memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0)
        reader->at = 3; /* a byte order mark */
    reader->began = true;
    return reader->at < reader->filled;
}

/* The next byte without taking it; -1 at the end of the text. */
static int peek(json_reader *reader)
{
    return refill(reader) ? reader->buffer[reader->at] : -1;
}

static int take(json_reader *reader)
{
    if (!refill(reader))
        return -1;
    int byte = reader->buffer[reader->at++];
    reader->line += byte == '\n';
    return byte;
}

static remat_status check_length(json_reader *reader)
{
    remat_place place = json_place(reader);
    place.line = reader->line;
    if (reader->bytes <= INPUT_MOST_BYTES)
        return REMAT_OK;
    return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "more than %llu MiB without a value",
                      (unsigned long long)(INPUT_MOST_BYTES >> 20));
}

static remat_status syntax_error(json_reader *reader, const char *wanted)
{
    remat_place place = json_place(reader);
    place.line = reader->line;
    int byte = peek(reader);
    if (byte < 0 && ferror(reader->stream))
        return remat_fail(reader->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
    if (byte < 0)
        REMAT_TRY(check_length(reader));
    if (byte < 0)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "the text ends where %s should stand", wanted);
    if (byte == 0)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "NUL byte where %s should stand", wanted);
    if (byte < 0x20 || byte >= 0x7f)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "byte 0x%02x where %s should stand", (unsigned)byte,
                          wanted);
    return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "'%c' where %s should stand", byte, wanted);
}

static remat_status put(json_reader *reader, int byte)
{
    if (reader->text_length >= LONGEST_STRING) {
        remat_place place = json_place(reader);
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "a string is longer than 16 MiB");
    }
    if (reader->text_length + 1 >= reader->text_capacity)
        REMAT_TRY(
            remat_grow(reader->context, (void **)&reader->text, &reader->text_capacity, reader->text_length + 2, 1));
    reader->text[reader->text_length++] = (char)byte;
    reader->text[reader->text_length] = '\0';
    return REMAT_OK;
}

static void skip_space(json_reader *reader)
{
    for (int byte = peek(reader); byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; byte = peek(reader))
        take(reader);
}

/* ---- strings ---- */

static remat_status put_code_point(json_reader *reader, uint32_t code)
{
    if (code < 0x80)
        return put(reader, (int)code);
    if (code < 0x800) {
        REMAT_TRY(put(reader, (int)(0xc0 | code >> 6)));
    } else {
        if (code < 0x10000) {
            REMAT_TRY(put(reader, (int)(0xe0 | code >> 12)));
        } else {
            REMAT_TRY(put(reader, (int)(0xf0 | code >> 18)));
            REMAT_TRY(put(reader, (int)(0x80 | (code >> 12 & 0x3f))));
        }
        REMAT_TRY(put(reader, (int)(0x80 | (code >> 6 & 0x3f))));
    }
    return put(reader, (int)(0x80 | (code & 0x3f)));
}

static remat_status take_hex4(json_reader *reader, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int byte = peek(reader), digit;
        if (byte >= '0' && byte <= '9')
            digit = byte - '0';
        else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
            digit = (byte | 0x20) - 'a' + 10;
        else
            return syntax_error(reader, "a hexadecimal digit of \\u");
        take(reader);
        *value = *value * 16 + (uint32_t)digit;
    }
    return REMAT_OK;
}

static remat_status take_unicode_escape(json_reader *reader)
{
    remat_place place = json_place(reader);
    uint32_t code, low;
    REMAT_TRY(take_hex4(reader, &code));
    if (code == 0)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "\\u0000 in a string; text may not hold NUL");
    if (code >= 0xdc00 && code < 0xe000)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "\\u%04x is half of a surrogate pair", code);
    if (code >= 0xd800 && code < 0xdc00) {
        if (peek(reader) != '\\')
            return syntax_error(reader, "the second half of a surrogate pair");
        take(reader);
        if (peek(reader) != 'u')
            return syntax_error(reader, "the second half of a surrogate pair");
        take(reader);
        REMAT_TRY(take_hex4(reader, &low));
        if (low < 0xdc00 || low >= 0xe000)
            return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "\\u%04x is half of a surrogate pair", code);
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_code_point(reader, code);
}

static remat_status take_escape(json_reader *reader)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int byte = peek(reader);
    const char *found = byte > 0 ? strchr(from, byte) : NULL;
    if (!found && byte != 'u')
        return syntax_error(reader, "one of \" \\ / b f n r t u behind a backslash");
    take(reader);
    return found ? put(reader, to[found - from]) : take_unicode_escape(reader);
}

/* The opening quote is taken already. */
static remat_status next_string(json_reader *reader)
{
    reader->text_length = 0;
    REMAT_TRY(put(reader, 0)); /* an empty string has text, too */
    reader->text_length = 0;
    bool plain = true;
    for (;;) {
        int byte = peek(reader);
        if (byte < 0x20)
            return syntax_error(reader, "more of a string or its closing quote");
        take(reader);
        if (byte == '"')
            break;
        plain = plain && byte < 0x80;
        REMAT_TRY(byte == '\\' ? take_escape(reader) : put(reader, byte));
    }
    reader->text[reader->text_length] = '\0';
    if (plain || remat_utf8_valid(reader->text))
        return REMAT_OK;
    remat_place place = json_place(reader);
    return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "a string is not valid UTF-8");
}

/* ---- numbers and words ---- */

static remat_status take_digits(json_reader *reader, json_token *token)
{
    if (peek(reader) < '0' || peek(reader) > '9')
        return syntax_error(reader, "a digit");
    for (int byte = peek(reader); byte >= '0' && byte <= '9'; byte = peek(reader)) {
        uint64_t ten_times;
        token->in_range = token->in_range && remat_multiply(token->integer, 10, &ten_times) &&
                          remat_add(&ten_times, (uint64_t)(byte - '0'));
        if (token->in_range)
            token->integer = ten_times;
        REMAT_TRY(put(reader, take(reader)));
    }
    return REMAT_OK;
}

static remat_status next_number(json_reader *reader, json_token *token)
{
    reader->text_length = 0;
    *token = (json_token){JSON_INTEGER, NULL, 0, true};
    bool negative = peek(reader) == '-';
    if (negative)
        REMAT_TRY(put(reader, take(reader)));
    bool zero_first = peek(reader) == '0';
    size_t before = reader->text_length;
    REMAT_TRY(take_digits(reader, token));
    if (zero_first && reader->text_length - before > 1) {
        remat_place place = json_place(reader);
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "a number starts with a needless 0");
    }
    if (negative)
        token->in_range = token->in_range && token->integer == 0;
    if (peek(reader) == '.') {
        token->kind = JSON_REAL;
        REMAT_TRY(put(reader, take(reader)));
        REMAT_TRY(take_digits(reader, token));
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        token->kind = JSON_REAL;
        REMAT_TRY(put(reader, take(reader)));
        if (peek(reader) == '+' || peek(reader) == '-')
            REMAT_TRY(put(reader, take(reader)));
        REMAT_TRY(take_digits(reader, token));
    }
    if (token->kind == JSON_REAL)
        token->in_range = false;
    token->text = reader->text;
    return REMAT_OK;
}

static remat_status next_word(json_reader *reader, json_token *token)
{
    static const struct {
        const char *word;
        json_kind kind;
    } words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (peek(reader) != words[i].word[0])
            continue;
        for (const char *letter = words[i].word; *letter; letter++) {
            if (peek(reader) != *letter)
                return syntax_error(reader, words[i].word);
            take(reader);
        }
        token->kind = words[i].kind;
        return REMAT_OK;
    }
    return syntax_error(reader, "a value");
}

/* ---- structure ---- */

static remat_status open_value(json_reader *reader, json_token *token, json_kind kind)
{
    if (reader->depth == DEEPEST) {
        remat_place place = json_place(reader);
        return remat_fail(reader->context, REMAT_BAD_INPUT, &place, "nested deeper than %d levels", DEEPEST);
    }
    take(reader);
    reader->in_object[reader->depth++] = kind == JSON_OBJECT;
    reader->expected = kind == JSON_OBJECT ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    token->kind = kind;
    return REMAT_OK;
}

static void value_done(json_reader *reader)
{
    reader->expected = reader->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA_OR_END;
}

static remat_status close_value(json_reader *reader, json_token *token)
{
    take(reader);
    reader->depth--;
    token->kind = reader->in_object[reader->depth] ? JSON_OBJECT_END : JSON_ARRAY_END;
    value_done(reader);
    return REMAT_OK;
}

static remat_status next_value(json_reader *reader, json_token *token)
{
    int byte = peek(reader);
    if (byte == '{' || byte == '[')
        return open_value(reader, token, byte == '{' ? JSON_OBJECT : JSON_ARRAY);
    if (byte == '"') {
        take(reader);
        REMAT_TRY(next_string(reader));
        token->kind = JSON_STRING;
        token->text = reader->text;
    } else if (byte == '-' || (byte >= '0' && byte <= '9')) {
        REMAT_TRY(next_number(reader, token));
    } else {
        REMAT_TRY(next_word(reader, token));
    }
    value_done(reader);
    return REMAT_OK;
}

static remat_status next_key(json_reader *reader, json_token *token)
{
    if (peek(reader) != '"')
        return syntax_error(reader, "a key in quotes");
    take(reader);
    REMAT_TRY(next_string(reader));
    skip_space(reader);
    if (peek(reader) != ':')
        return syntax_error(reader, "':' behind a key");
    take(reader);
    token->kind = JSON_KEY;
    token->text = reader->text;
    reader->expected = EXPECT_VALUE;
    return REMAT_OK;
}

remat_status json_next(json_reader *reader, json_token *token)
{
    *token = (json_token){JSON_END, "", 0, false};
    reader->bytes = 0;
    skip_space(reader);
    reader->token_line = reader->line;
    bool in_object = reader->depth > 0 && reader->in_object[reader->depth - 1];
    int byte = peek(reader), closing = in_object ? '}' : ']';
    switch (reader->expected) {
    case EXPECT_NOTHING:
        if (byte < 0 && !ferror(reader->stream))
            return check_length(reader);
        return syntax_error(reader, "the end of the text");
    case EXPECT_COMMA_OR_END:
        if (byte == closing)
            return close_value(reader, token);
        if (byte != ',')
            return syntax_error(reader, in_object ? "',' or '}'" : "',' or ']'");
        take(reader);
        skip_space(reader);
        reader->token_line = reader->line;
        return in_object ? next_key(reader, token) : next_value(reader, token);
    case EXPECT_KEY_OR_END: return byte == closing ? close_value(reader, token) : next_key(reader, token);
    case EXPECT_VALUE_OR_END: return byte == closing ? close_value(reader, token) : next_value(reader, token);
    case EXPECT_VALUE: return next_value(reader, token);
    }
    return REMAT_INTERNAL;
}

remat_status json_skip_rest(json_reader *reader, const json_token *token)
{
    if (token->kind != JSON_OBJECT && token->kind != JSON_ARRAY)
        return REMAT_OK;
    unsigned outside = reader->depth - 1;
    while (reader->depth > outside) {
        json_token inner;
        REMAT_TRY(json_next(reader, &inner));
    }
    return REMAT_OK;
}

remat_status json_skip(json_reader *reader)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    return json_skip_rest(reader, &token);
}

remat_context *json_reader_context(const json_reader *reader)
{
    return reader->context;
}
