#include "data/tokenizer/vocabulary.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "data/tokenizer/byte_letters.h"

#include <string.h>

enum { LARGEST_GAP = 65536 };

void vocabulary_begin(vocabulary *tokens, remat_context *context)
{
    *tokens = (vocabulary){.context = context};
}

static void release_tables(vocabulary *tokens)
{
    remat_release(tokens->context, tokens->by_id, tokens->id_count, sizeof *tokens->by_id);
    remat_release(tokens->context, tokens->by_text, tokens->slots, sizeof *tokens->by_text);
    remat_release(tokens->context, tokens->by_bytes, tokens->slots, sizeof *tokens->by_bytes);
    tokens->by_id = tokens->by_text = tokens->by_bytes = NULL;
    tokens->id_count = tokens->slots = 0;
}

void vocabulary_end(vocabulary *tokens)
{
    if (!tokens->context)
        return;
    release_tables(tokens);
    remat_release(tokens->context, tokens->texts, tokens->text_capacity, 1);
    remat_release(tokens->context, tokens->tokens, tokens->token_capacity, sizeof *tokens->tokens);
}

/* Makes room for a text of this length and its end. */
static remat_status reserve(vocabulary *tokens, size_t length)
{
    if (length >= UINT32_MAX - tokens->text_bytes)
        return remat_fail(tokens->context, REMAT_BAD_INPUT, NULL, "the tokens have 4 GiB of text or more");
    return remat_grow(tokens->context, (void **)&tokens->texts, &tokens->text_capacity, tokens->text_bytes + length + 1,
                      1);
}

static remat_status add_text(vocabulary *tokens, const char *text, size_t length, uint32_t *at)
{
    REMAT_TRY(reserve(tokens, length));
    *at = (uint32_t)tokens->text_bytes;
    memcpy(tokens->texts + *at, text, length);
    tokens->texts[*at + length] = '\0';
    tokens->text_bytes += length + 1;
    return REMAT_OK;
}

remat_status vocabulary_add(vocabulary *tokens, const char *text, uint32_t id)
{
    vocabulary_token token = {.id = id, .text_length = (uint32_t)strlen(text)};
    REMAT_TRY(add_text(tokens, text, token.text_length, &token.text));
    REMAT_TRY(remat_grow(tokens->context, (void **)&tokens->tokens, &tokens->token_capacity, tokens->token_count + 1,
                         sizeof *tokens->tokens));
    tokens->tokens[tokens->token_count++] = token;
    return REMAT_OK;
}

/* ---- tables ---- */

static const char *key_of(const vocabulary *tokens, const vocabulary_token *token, bool of_bytes, size_t *length)
{
    *length = of_bytes ? token->byte_length : token->text_length;
    return tokens->texts + (of_bytes ? token->bytes : token->text);
}

/* The slot of a key in a table: where it is, or where it would be put. */
static size_t slot_of(const vocabulary *tokens, bool of_bytes, const void *key, size_t length)
{
    const uint32_t *table = of_bytes ? tokens->by_bytes : tokens->by_text;
    size_t mask = tokens->slots - 1, slot = (size_t)XXH3_64bits(key, length) & mask;
    for (; table[slot] != NO_TOKEN; slot = (slot + 1) & mask) {
        size_t other_length;
        const char *other = key_of(tokens, &tokens->tokens[table[slot]], of_bytes, &other_length);
        if (other_length == length && memcmp(other, key, length) == 0)
            break;
    }
    return slot;
}

static remat_status find_bytes(vocabulary *tokens, vocabulary_token *token, bool byte_level)
{
    token->bytes = token->text;
    token->byte_length = token->text_length;
    token->has_bytes = true;
    if (!byte_level)
        return REMAT_OK;
    size_t count;
    REMAT_TRY(reserve(tokens, token->text_length));
    unsigned char *bytes = (unsigned char *)tokens->texts + tokens->text_bytes;
    token->has_bytes = byte_letters_to_bytes(vocabulary_text(tokens, token), token->text_length, bytes, &count);
    if (!token->has_bytes)
        return REMAT_OK;
    token->bytes = (uint32_t)tokens->text_bytes;
    token->byte_length = (uint32_t)count;
    tokens->text_bytes += count;
    return REMAT_OK;
}

static remat_status make_tables(vocabulary *tokens, size_t ids)
{
    size_t slots = 16;
    while (slots < tokens->token_count * 2)
        slots *= 2;
    tokens->by_id = remat_alloc(tokens->context, ids, sizeof *tokens->by_id);
    tokens->id_count = ids;
    tokens->slots = slots;
    tokens->by_text = remat_alloc(tokens->context, slots, sizeof *tokens->by_text);
    tokens->by_bytes = remat_alloc(tokens->context, slots, sizeof *tokens->by_bytes);
    if (!tokens->by_id || !tokens->by_text || !tokens->by_bytes)
        return REMAT_NO_MEMORY;
    memset(tokens->by_id, 0xff, ids * sizeof *tokens->by_id);
    memset(tokens->by_text, 0xff, slots * sizeof *tokens->by_text);
    memset(tokens->by_bytes, 0xff, slots * sizeof *tokens->by_bytes);
    return REMAT_OK;
}

static remat_status put_token(vocabulary *tokens, uint32_t which, const remat_place *place)
{
    const vocabulary_token *token = &tokens->tokens[which];
    const char *text = vocabulary_text(tokens, token);
    if (tokens->by_id[token->id] != NO_TOKEN)
        return remat_fail(tokens->context, REMAT_BAD_INPUT, place, "the tokens '%.60s' and '%.60s' both have the id %u",
                          vocabulary_text(tokens, &tokens->tokens[tokens->by_id[token->id]]), text, token->id);
    tokens->by_id[token->id] = which;
    size_t slot = slot_of(tokens, false, text, token->text_length);
    if (tokens->by_text[slot] != NO_TOKEN)
        return remat_fail(tokens->context, REMAT_BAD_INPUT, place, "the token '%.60s' is there twice", text);
    tokens->by_text[slot] = which;
    if (!token->has_bytes)
        return REMAT_OK;
    slot = slot_of(tokens, true, tokens->texts + token->bytes, token->byte_length);
    tokens->by_bytes[slot] = which;
    return REMAT_OK;
}

remat_status vocabulary_index(vocabulary *tokens, bool byte_level, const remat_place *place)
{
    release_tables(tokens);
    uint32_t largest = 0;
    for (size_t i = 0; i < tokens->token_count; i++) {
        largest = tokens->tokens[i].id > largest ? tokens->tokens[i].id : largest;
        REMAT_TRY(find_bytes(tokens, &tokens->tokens[i], byte_level));
    }
    if (largest >= 2 * tokens->token_count + LARGEST_GAP)
        return remat_fail(tokens->context, REMAT_BAD_INPUT, place,
                          "the id %u is too large for a vocabulary of %zu tokens", largest, tokens->token_count);
    REMAT_TRY(make_tables(tokens, tokens->token_count ? (size_t)largest + 1 : 0));
    for (size_t i = 0; i < tokens->token_count; i++)
        REMAT_TRY(put_token(tokens, (uint32_t)i, place));
    return REMAT_OK;
}

uint32_t vocabulary_find(const vocabulary *tokens, const char *text, size_t length)
{
    uint32_t which = tokens->slots ? tokens->by_text[slot_of(tokens, false, text, length)] : NO_TOKEN;
    return which == NO_TOKEN ? NO_TOKEN : tokens->tokens[which].id;
}

uint32_t vocabulary_find_bytes(const vocabulary *tokens, const unsigned char *bytes, size_t length)
{
    uint32_t which = tokens->slots ? tokens->by_bytes[slot_of(tokens, true, bytes, length)] : NO_TOKEN;
    return which == NO_TOKEN ? NO_TOKEN : tokens->tokens[which].id;
}

const vocabulary_token *vocabulary_at(const vocabulary *tokens, uint32_t id)
{
    return id < tokens->id_count && tokens->by_id[id] != NO_TOKEN ? &tokens->tokens[tokens->by_id[id]] : NULL;
}
