#include "data/tokenizer/bpe.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "data/tokenizer/bpe_merge.h"
#include "data/tokenizer/unicode.h"

#include <stdio.h>
#include <string.h>

#define NO_PAIR UINT64_MAX

enum {
    CACHED_BYTES = 30,
    CACHED_TOKENS = 8,
    CACHE_SLOTS = 1 << 14,
    BOUNDARY = 0x2581, /* the mark of a blank in sentencepiece's vocabularies */
};

/* A word that was encoded before. Words repeat: most of a text is found here. */
typedef struct bpe_cached {
    uint64_t hash;
    uint8_t length, count; /* length 0: empty */
    unsigned char word[CACHED_BYTES];
    uint32_t ids[CACHED_TOKENS];
    uint8_t lengths[CACHED_TOKENS];
} bpe_cached;

void bpe_begin(bpe *model, remat_context *context)
{
    *model = (bpe){.context = context, .unknown = NO_TOKEN};
    vocabulary_begin(&model->tokens, context);
}

void bpe_tokens_end(remat_context *context, bpe_tokens *tokens)
{
    remat_release(context, tokens->ids, tokens->id_capacity, sizeof *tokens->ids);
    remat_release(context, tokens->lengths, tokens->length_capacity, sizeof *tokens->lengths);
    *tokens = (bpe_tokens){0};
}

void bpe_end(bpe *model)
{
    if (!model->context)
        return;
    vocabulary_end(&model->tokens);
    remat_release(model->context, model->merges, model->merge_slots, sizeof *model->merges);
    remat_release(model->context, model->cache, CACHE_SLOTS, sizeof *model->cache);
    bpe_tokens_end(model->context, &model->scratch);
    bpe_merge_end(model);
}

/* ---- merges ---- */

static size_t merge_slot(const bpe *model, uint64_t pair)
{
    size_t mask = model->merge_slots - 1, slot = (size_t)((pair * 0x9e3779b97f4a7c15u) >> model->merge_shift);
    while (model->merges[slot].pair != pair && model->merges[slot].pair != NO_PAIR)
        slot = (slot + 1) & mask;
    return slot;
}

remat_status bpe_make_merges(bpe *model, size_t count)
{
    model->merge_slots = 16;
    model->merge_shift = 60;
    for (; model->merge_slots < count * 2; model->merge_slots *= 2)
        model->merge_shift--;
    model->merges = remat_alloc(model->context, model->merge_slots, sizeof *model->merges);
    if (!model->merges)
        return REMAT_NO_MEMORY;
    memset(model->merges, 0xff, model->merge_slots * sizeof *model->merges);
    return REMAT_OK;
}

void bpe_add_merge(bpe *model, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    bpe_merge *merge = &model->merges[merge_slot(model, pair)];
    model->merge_count += merge->pair == NO_PAIR;
    *merge = (bpe_merge){pair, rank, id};
}

const bpe_merge *bpe_find_merge(const bpe *model, uint32_t left, uint32_t right)
{
    const bpe_merge *merge = &model->merges[merge_slot(model, (uint64_t)left << 32 | right)];
    return merge->pair == NO_PAIR ? NULL : merge;
}

/* ---- getting ready ---- */

/* Whether no merge puts something before the mark of a blank, except marks. */
static bool has_boundary(const bpe *model)
{
    unsigned char mark[4];
    size_t bytes = unicode_put(BOUNDARY, mark);
    if (model->byte_level || vocabulary_find_bytes(&model->tokens, mark, bytes) == NO_TOKEN)
        return false;
    for (size_t i = 0; i < model->merge_slots; i++) {
        if (model->merges[i].pair == NO_PAIR)
            continue;
        const vocabulary_token *left = vocabulary_at(&model->tokens, (uint32_t)(model->merges[i].pair >> 32));
        const vocabulary_token *right = vocabulary_at(&model->tokens, (uint32_t)model->merges[i].pair);
        const char *left_text = vocabulary_text(&model->tokens, left);
        const char *right_text = vocabulary_text(&model->tokens, right);
        bool begins = right->text_length >= bytes && memcmp(right_text, mark, bytes) == 0;
        bool ends = left->text_length >= bytes && memcmp(left_text + left->text_length - bytes, mark, bytes) == 0;
        if (begins && !ends)
            return false;
    }
    return true;
}

remat_status bpe_ready(bpe *model)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned char one = (unsigned char)byte;
        char text[8];
        int length = snprintf(text, sizeof text, "<0x%02X>", byte);
        model->byte_ids[byte] = model->byte_level ? vocabulary_find_bytes(&model->tokens, &one, 1)
                                                  : vocabulary_find(&model->tokens, text, (size_t)length);
    }
    model->boundary = has_boundary(model) ? BOUNDARY : 0;
    model->cache = remat_alloc_zeroed(model->context, CACHE_SLOTS, sizeof *model->cache);
    return model->cache ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- characters ---- */

remat_status bpe_tokens_add(remat_context *context, bpe_tokens *to, uint32_t id, uint32_t length)
{
    if (to->count == to->id_capacity)
        REMAT_TRY(remat_grow(context, (void **)&to->ids, &to->id_capacity, to->count + 1, sizeof *to->ids));
    if (to->count == to->length_capacity)
        REMAT_TRY(remat_grow(context, (void **)&to->lengths, &to->length_capacity, to->count + 1, sizeof *to->lengths));
    to->ids[to->count] = id;
    to->lengths[to->count++] = length;
    return REMAT_OK;
}

/* The tokens of a character's bytes. Returns false where one of them is missing. */
static remat_status add_fallback(bpe *model, const unsigned char *at, size_t bytes, bool *added)
{
    *added = model->byte_fallback;
    for (size_t i = 0; i < bytes; i++)
        *added = *added && model->byte_ids[at[i]] != NO_TOKEN;
    for (size_t i = 0; *added && i < bytes; i++)
        REMAT_TRY(bpe_tokens_add(model->context, &model->scratch, model->byte_ids[at[i]], 1));
    return REMAT_OK;
}

/* An unknown token that is not added yet: it may become longer. */
typedef struct unknown_token {
    uint32_t length; /* 0: none */
} unknown_token;

static remat_status flush_unknown(bpe *model, unknown_token *held)
{
    if (held->length)
        REMAT_TRY(bpe_tokens_add(model->context, &model->scratch, model->unknown, held->length));
    held->length = 0;
    return REMAT_OK;
}

static remat_status add_character(bpe *model, const unsigned char *at, size_t bytes, unknown_token *held)
{
    uint32_t id = model->byte_level ? model->byte_ids[*at] : vocabulary_find_bytes(&model->tokens, at, bytes);
    if (id != NO_TOKEN) {
        REMAT_TRY(flush_unknown(model, held));
        return bpe_tokens_add(model->context, &model->scratch, id, (uint32_t)bytes);
    }
    bool added;
    /* An unknown token that is held stays behind these: the library `tokenizers` does so, too. */
    REMAT_TRY(add_fallback(model, at, bytes, &added));
    if (added || model->unknown == NO_TOKEN)
        return REMAT_OK;
    if (!model->fuse_unknown)
        REMAT_TRY(flush_unknown(model, held));
    held->length += (uint32_t)bytes;
    return REMAT_OK;
}

/* The tokens of a word's characters, in the scratch. */
static remat_status split_characters(bpe *model, const unsigned char *word, size_t length)
{
    unknown_token held = {0};
    model->scratch.count = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code;
        size_t bytes = model->byte_level ? 1 : unicode_take(word + at, &code);
        REMAT_TRY(add_character(model, word + at, bytes, &held));
        at += bytes;
    }
    return flush_unknown(model, &held);
}

/* ---- words ---- */

static remat_status append(bpe *model, const uint32_t *ids, const uint32_t *lengths, size_t count, bpe_tokens *to)
{
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(bpe_tokens_add(model->context, to, ids[i], lengths[i]));
    return REMAT_OK;
}

static void remember(bpe_cached *slot, uint64_t hash, const unsigned char *word, size_t length,
                     const bpe_tokens *tokens)
{
    if (tokens->count > CACHED_TOKENS)
        return;
    *slot = (bpe_cached){.hash = hash, .length = (uint8_t)length, .count = (uint8_t)tokens->count};
    memcpy(slot->word, word, length);
    for (size_t i = 0; i < tokens->count; i++) {
        slot->ids[i] = tokens->ids[i];
        slot->lengths[i] = (uint8_t)tokens->lengths[i];
    }
}

static remat_status encode_word(bpe *model, const unsigned char *word, size_t length, bpe_tokens *to)
{
    bool is_short = length <= CACHED_BYTES;
    uint64_t hash = is_short ? XXH3_64bits(word, length) : 0;
    bpe_cached *slot = &model->cache[hash & (CACHE_SLOTS - 1)];
    if (is_short && slot->hash == hash && slot->length == length && memcmp(slot->word, word, length) == 0) {
        for (size_t i = 0; i < slot->count; i++)
            REMAT_TRY(bpe_tokens_add(model->context, to, slot->ids[i], slot->lengths[i]));
        return REMAT_OK;
    }
    REMAT_TRY(split_characters(model, word, length));
    REMAT_TRY(bpe_merge_all(model));
    if (is_short)
        remember(slot, hash, word, length, &model->scratch);
    return append(model, model->scratch.ids, model->scratch.lengths, model->scratch.count, to);
}

/* The end of the part of a word that begins at `at` and that no merge leaves: before the next mark behind something else. */
static size_t part_end(const unsigned char *word, size_t length, size_t at)
{
    static const unsigned char mark[] = {0xe2, 0x96, 0x81};
    bool in_marks = true;
    while (at < length) {
        bool is_mark = word[at] == mark[0] && length - at >= sizeof mark && memcmp(word + at, mark, sizeof mark) == 0;
        if (is_mark && !in_marks)
            return at;
        in_marks = is_mark;
        at += is_mark ? sizeof mark : 1;
    }
    return length;
}

remat_status bpe_encode(bpe *model, const unsigned char *word, size_t length, bpe_tokens *to)
{
    if (length == 0)
        return REMAT_OK;
    if (length > UINT32_MAX / 2)
        return remat_fail(model->context, REMAT_INVALID, NULL, "a word of %zu bytes is too long", length);
    uint32_t whole = model->ignore_merges ? vocabulary_find_bytes(&model->tokens, word, length) : NO_TOKEN;
    if (whole != NO_TOKEN)
        return bpe_tokens_add(model->context, to, whole, (uint32_t)length);
    if (!model->boundary)
        return encode_word(model, word, length, to);
    for (size_t at = 0, end; at < length; at = end) {
        end = part_end(word, length, at);
        REMAT_TRY(encode_word(model, word + at, end - at, to));
    }
    return REMAT_OK;
}
