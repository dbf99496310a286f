/* A text becomes tokens: added tokens are cut out; what is between them is normalized; normalized added tokens are cut out of
 * that; the rest is split into words, and these are encoded. */
#include "data/tokenizer/tokenizer_object.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <string.h>

static remat_status add_word(void *user, const text_span *word)
{
    remat_tokenizer *tokenizer = user;
    bpe_tokens *out = &tokenizer->out;
    size_t first = out->count, at = 0;
    REMAT_TRY(bpe_encode(&tokenizer->model, word->bytes, word->length, out));
    for (size_t i = first; i < out->count; i++) {
        uint32_t bytes = out->lengths[i];
        /* Unknown characters that were dropped may leave the word longer than its tokens; never shorter. */
        out->lengths[i] = span_origin(word, at < word->length ? at : word->length - 1);
        at += bytes;
    }
    return REMAT_OK;
}

static remat_status encode_words(remat_tokenizer *tokenizer, const text_span *text)
{
    return parts_split(tokenizer->context, &tokenizer->pre_tokenizers, *text, add_word, tokenizer);
}

static remat_status encode_normalized(remat_tokenizer *tokenizer, const text_span *text)
{
    text_span normalized;
    REMAT_TRY(parts_normalize(tokenizer->context, &tokenizer->normalizers, *text, &normalized));
    return encode_words(tokenizer, &normalized);
}

/* Cuts added tokens out, and gives the text between them to `rest`. */
static remat_status cut_tokens(remat_tokenizer *tokenizer, bool normalized, const text_span *text,
                               remat_status (*rest)(remat_tokenizer *tokenizer, const text_span *text))
{
    size_t taken = 0, from = 0;
    while (from < text->length) {
        token_match match = added_tokens_search(&tokenizer->added, normalized, text->bytes, text->length, from, taken);
        if (!match.token)
            break;
        if (taken < match.start) {
            text_span part = span_part(text, taken, match.start);
            REMAT_TRY(rest(tokenizer, &part));
        }
        REMAT_TRY(bpe_tokens_add(tokenizer->context, &tokenizer->out, match.token->id, span_origin(text, match.start)));
        taken = match.end;
        from = match.next;
    }
    if (taken >= text->length)
        return REMAT_OK;
    text_span part = span_part(text, taken, text->length);
    return rest(tokenizer, &part);
}

static remat_status encode_between(remat_tokenizer *tokenizer, const text_span *text)
{
    if (tokenizer->added.normalized.node_count <= 1)
        return encode_normalized(tokenizer, text);
    text_span normalized;
    REMAT_TRY(parts_normalize(tokenizer->context, &tokenizer->normalizers, *text, &normalized));
    return cut_tokens(tokenizer, true, &normalized, encode_words);
}

remat_status tokenizer_encode_text(remat_tokenizer *tokenizer, const unsigned char *text, size_t length)
{
    const text_span whole = {.bytes = text, .length = length};
    return cut_tokens(tokenizer, false, &whole, encode_between);
}

/* ---- the public calls ---- */

remat_status tokenizer_check_text(remat_context *context, const char *text, size_t bytes)
{
    if (bytes >= UINT32_MAX / 2)
        return remat_fail(context, REMAT_INVALID, NULL, "a text of %zu bytes is too long to encode in one piece",
                          bytes);
    for (size_t at = 0; at < bytes;) {
        if ((unsigned char)text[at] < 0x80) {
            at++;
            continue;
        }
        uint32_t code;
        char last[5] = {0}; /* the end of the text is the end of a character */
        size_t left = bytes - at;
        memcpy(last, text + at, left < 4 ? left : 4);
        at += utf8_take(last, &code);
        if (code == UTF8_INVALID)
            return remat_fail(context, REMAT_BAD_INPUT, NULL, "byte %zu of the text, 0x%02x, is not UTF-8", at,
                              (unsigned char)last[0]);
    }
    return REMAT_OK;
}

static remat_status add_list(remat_tokenizer *tokenizer, const token_list *list, size_t at)
{
    for (size_t i = 0; i < list->count; i++)
        REMAT_TRY(bpe_tokens_add(tokenizer->context, &tokenizer->out, list->ids[i], (uint32_t)at));
    return REMAT_OK;
}

remat_status remat_tokenizer_encode(remat_tokenizer *tokenizer, const char *text, size_t bytes, int special,
                                    const int32_t **ids, size_t *count)
{
    *ids = NULL;
    *count = tokenizer->out.count = 0;
    REMAT_TRY(tokenizer_check_text(tokenizer->context, text, bytes));
    if (special)
        REMAT_TRY(add_list(tokenizer, &tokenizer->before, 0));
    REMAT_TRY(tokenizer_encode_text(tokenizer, (const unsigned char *)text, bytes));
    if (special)
        REMAT_TRY(add_list(tokenizer, &tokenizer->behind, bytes));
    *ids = (const int32_t *)tokenizer->out.ids;
    *count = tokenizer->out.count;
    return REMAT_OK;
}

const uint32_t *remat_tokenizer_starts(const remat_tokenizer *tokenizer)
{
    return tokenizer->out.lengths;
}
