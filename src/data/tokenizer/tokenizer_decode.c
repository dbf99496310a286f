/* Tokens become a text: each is a piece, and decoders change pieces one after the other. */
#include "data/tokenizer/tokenizer_object.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/unicode.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void decoded_text_end(remat_context *context, decoded_text *text)
{
    remat_release(context, text->bytes, text->byte_capacity, 1);
    remat_release(context, text->ends, text->end_capacity, sizeof *text->ends);
    *text = (decoded_text){0};
}

static remat_status put(remat_context *context, decoded_text *to, const void *bytes, size_t count)
{
    REMAT_TRY(remat_grow(context, (void **)&to->bytes, &to->byte_capacity, to->length + count + 1, 1));
    memcpy(to->bytes + to->length, bytes, count);
    to->length += count;
    to->bytes[to->length] = '\0';
    return REMAT_OK;
}

static remat_status end_piece(remat_context *context, decoded_text *to)
{
    REMAT_TRY(remat_grow(context, (void **)&to->ends, &to->end_capacity, to->count + 1, sizeof *to->ends));
    to->ends[to->count++] = to->length;
    return REMAT_OK;
}

static const char *piece_at(const decoded_text *text, size_t which, size_t *length)
{
    size_t begin = which ? text->ends[which - 1] : 0;
    *length = text->ends[which] - begin;
    return text->bytes + begin;
}

/* ---- UTF-8 ---- */

/* How many bytes at `at` are one character, or the beginning of one that does not go on. */
static size_t character_bytes(const unsigned char *text, size_t length, size_t at, bool *whole)
{
    unsigned char first = text[at], low = 0x80, high = 0xbf;
    size_t wanted = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
    high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
    size_t bytes = 1;
    for (; bytes < wanted && at + bytes < length; bytes++) {
        unsigned char byte = text[at + bytes];
        if (byte < low || byte > high)
            break;
        low = 0x80;
        high = 0xbf;
    }
    *whole = bytes == wanted;
    return bytes;
}

/* Appends bytes; what is not UTF-8 becomes U+FFFD. */
static remat_status put_lossy(remat_context *context, decoded_text *to, const unsigned char *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        bool whole;
        size_t taken = character_bytes(bytes, count, at, &whole);
        REMAT_TRY(put(context, to, whole ? (const void *)(bytes + at) : replacement, whole ? taken : 3));
        at += taken;
    }
    return REMAT_OK;
}

static bool is_utf8(const unsigned char *bytes, size_t count)
{
    bool whole = true;
    for (size_t at = 0; at < count && whole;)
        at += character_bytes(bytes, count, at, &whole);
    return whole;
}

/* ---- decoders ---- */

/* The letters of all tokens become bytes, and these one text. */
static remat_status decode_byte_level(remat_context *context, const decoded_text *from, decoded_text *to)
{
    unsigned char *bytes = remat_alloc(context, from->length, 1);
    if (!bytes)
        return REMAT_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        size_t length, taken;
        const char *piece = piece_at(from, i, &length);
        if (!byte_letters_to_bytes(piece, length, bytes + count, &taken)) {
            memcpy(bytes + count, piece, length);
            taken = length;
        }
        count += taken;
    }
    remat_status status = put_lossy(context, to, bytes, count);
    remat_release(context, bytes, from->length, 1);
    return status == REMAT_OK ? end_piece(context, to) : status;
}

static remat_status decode_metaspace(remat_context *context, const token_part *part, const decoded_text *from,
                                     decoded_text *to)
{
    size_t mark = strlen(part->content);
    for (size_t i = 0; i < from->count; i++) {
        size_t length;
        const char *piece = piece_at(from, i, &length);
        for (size_t at = 0; at < length;) {
            bool is_mark = length - at >= mark && memcmp(piece + at, part->content, mark) == 0;
            if (!is_mark)
                REMAT_TRY(put(context, to, piece + at, 1));
            else if (i > 0 || part->scheme == PREPEND_NEVER)
                REMAT_TRY(put(context, to, " ", 1));
            at += is_mark ? mark : 1;
        }
        REMAT_TRY(end_piece(context, to));
    }
    return REMAT_OK;
}

static remat_status decode_replace(remat_context *context, const token_part *part, const decoded_text *from,
                                   decoded_text *to)
{
    size_t content = strlen(part->content);
    for (size_t i = 0; i < from->count; i++) {
        size_t length;
        const unsigned char *piece = (const unsigned char *)piece_at(from, i, &length);
        pattern_search search = split_pattern_begin(piece, length);
        for (size_t at = 0, start, end; at < length; at = end) {
            REMAT_TRY(split_pattern_find(part->pattern, &search, at, &start, &end));
            REMAT_TRY(put(context, to, piece + at, start - at));
            if (start < length)
                REMAT_TRY(put(context, to, part->content, content));
        }
        REMAT_TRY(end_piece(context, to));
    }
    return REMAT_OK;
}

static int hex_digit(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* The byte of a token such as <0x0A>; -1: it is another token. Rust's parser of numbers takes a sign, too. */
static int fallback_byte(const char *piece, size_t length)
{
    if (length != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>')
        return -1;
    int high = piece[3] == '+' ? 0 : hex_digit(piece[3]), low = hex_digit(piece[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Bytes that are one text are a piece; otherwise each is U+FFFD. */
static remat_status put_fallback(remat_context *context, decoded_text *to, const unsigned char *bytes, size_t count)
{
    if (count && is_utf8(bytes, count)) {
        REMAT_TRY(put(context, to, bytes, count));
        return end_piece(context, to);
    }
    for (size_t i = 0; i < count; i++) {
        REMAT_TRY(put(context, to, replacement, 3));
        REMAT_TRY(end_piece(context, to));
    }
    return REMAT_OK;
}

static remat_status put_fallbacks(remat_context *context, const decoded_text *from, decoded_text *to,
                                  unsigned char *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        size_t length;
        const char *piece = piece_at(from, i, &length);
        int byte = fallback_byte(piece, length);
        if (byte >= 0) {
            bytes[count++] = (unsigned char)byte;
            continue;
        }
        REMAT_TRY(put_fallback(context, to, bytes, count));
        count = 0;
        REMAT_TRY(put(context, to, piece, length));
        REMAT_TRY(end_piece(context, to));
    }
    return put_fallback(context, to, bytes, count);
}

static remat_status decode_byte_fallback(remat_context *context, const decoded_text *from, decoded_text *to)
{
    unsigned char *bytes = remat_alloc(context, from->count, 1);
    if (!bytes)
        return REMAT_NO_MEMORY;
    remat_status status = put_fallbacks(context, from, to, bytes);
    remat_release(context, bytes, from->count, 1);
    return status;
}

static remat_status decode_fuse(remat_context *context, const decoded_text *from, decoded_text *to)
{
    REMAT_TRY(put(context, to, from->bytes ? from->bytes : "", from->length));
    return end_piece(context, to);
}

static remat_status decode_strip(remat_context *context, const token_part *part, const decoded_text *from,
                                 decoded_text *to)
{
    size_t content = strlen(part->content);
    for (size_t i = 0; i < from->count; i++) {
        size_t length;
        const char *piece = piece_at(from, i, &length);
        for (uint32_t n = 0; n < part->start && length >= content && memcmp(piece, part->content, content) == 0; n++) {
            piece += content;
            length -= content;
        }
        for (uint32_t n = 0; n < part->stop && length >= content; n++) {
            if (memcmp(piece + length - content, part->content, content) != 0)
                break;
            length -= content;
        }
        REMAT_TRY(put(context, to, piece, length));
        REMAT_TRY(end_piece(context, to));
    }
    return REMAT_OK;
}

static remat_status decode_part(remat_context *context, const token_part *part, const decoded_text *from,
                                decoded_text *to)
{
    switch (part->kind) {
    case PART_BYTE_LEVEL: return decode_byte_level(context, from, to);
    case PART_METASPACE: return decode_metaspace(context, part, from, to);
    case PART_REPLACE: return decode_replace(context, part, from, to);
    case PART_BYTE_FALLBACK: return decode_byte_fallback(context, from, to);
    case PART_FUSE: return decode_fuse(context, from, to);
    case PART_STRIP: return decode_strip(context, part, from, to);
    default: return remat_fail(context, REMAT_INTERNAL, NULL, "a tokenizer's decoder is none");
    }
}

/* ---- the public call ---- */

/* The text of a token before it is decoded; NULL: there is none, or it is left out. */
static const char *token_text(const remat_tokenizer *tokenizer, int32_t id, bool special)
{
    const added_token *added = id < 0 ? NULL : added_tokens_at(&tokenizer->added, (uint32_t)id);
    if (!added)
        return remat_tokenizer_token(tokenizer, id);
    const char *text = added_token_text(added);
    /* Special is what has the text of a special token. */
    const added_token *same = text == added->content ? added : added_tokens_find(&tokenizer->added, text);
    return special || !same || !same->special ? text : NULL;
}

static remat_status put_tokens(remat_tokenizer *tokenizer, const int32_t *ids, size_t count, bool special,
                               decoded_text *to)
{
    bool joins = tokenizer->decoders.count == 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = token_text(tokenizer, ids[i], special);
        if (!text)
            continue;
        if (joins && to->count)
            REMAT_TRY(put(tokenizer->context, to, " ", 1));
        REMAT_TRY(put(tokenizer->context, to, text, strlen(text)));
        REMAT_TRY(end_piece(tokenizer->context, to));
    }
    return REMAT_OK;
}

static void empty(decoded_text *text)
{
    text->length = text->count = 0;
}

remat_status remat_tokenizer_decode(remat_tokenizer *tokenizer, const int32_t *ids, size_t count, int special,
                                    const char **text, size_t *bytes)
{
    decoded_text *from = &tokenizer->decoded[0], *to = &tokenizer->decoded[1];
    *text = "";
    *bytes = 0;
    empty(from);
    REMAT_TRY(put_tokens(tokenizer, ids, count, special != 0, from));
    for (size_t i = 0; i < tokenizer->decoders.count; i++) {
        empty(to);
        REMAT_TRY(decode_part(tokenizer->context, &tokenizer->decoders.parts[i], from, to));
        decoded_text *other = from;
        from = to;
        to = other;
    }
    if (from->length) {
        *text = from->bytes;
        *bytes = from->length;
    }
    return REMAT_OK;
}
