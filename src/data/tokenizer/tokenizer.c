#include "data/tokenizer/tokenizer_object.h"

#include "base/alloc.h"
#include "data/tokenizer/tokenizer_decode.h"

#include <string.h>

/* Looking one up takes a walk over all of them. */
enum { MOST_ADDED = 20000 };

remat_status tokenizer_create(remat_context *context, remat_tokenizer **tokenizer)
{
    remat_tokenizer *made = *tokenizer = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    bpe_begin(&made->model, context);
    added_tokens_begin(&made->added, context);
    return REMAT_OK;
}

static void end_list(remat_context *context, token_list *list)
{
    remat_release(context, list->ids, list->capacity, sizeof *list->ids);
}

void remat_tokenizer_destroy(remat_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    remat_context *context = tokenizer->context;
    part_list_end(context, &tokenizer->normalizers);
    part_list_end(context, &tokenizer->pre_tokenizers);
    part_list_end(context, &tokenizer->decoders);
    bpe_end(&tokenizer->model);
    added_tokens_end(&tokenizer->added);
    remat_text_release(context, tokenizer->path);
    end_list(context, &tokenizer->before);
    end_list(context, &tokenizer->behind);
    bpe_tokens_end(context, &tokenizer->out);
    decoded_text_end(context, &tokenizer->decoded[0]);
    decoded_text_end(context, &tokenizer->decoded[1]);
    remat_release(context, tokenizer, 1, sizeof *tokenizer);
}

/* ---- added tokens ---- */

/* The content of an added token as it is found in a normalized text; NULL where it is the same. */
static remat_status normalize_content(remat_tokenizer *tokenizer, const char *content, char **normalized)
{
    *normalized = NULL;
    text_span span = {.bytes = (const unsigned char *)content, .length = strlen(content)}, result;
    REMAT_TRY(parts_normalize(tokenizer->context, &tokenizer->normalizers, span, &result));
    if (result.length == span.length && memcmp(result.bytes, span.bytes, span.length) == 0)
        return REMAT_OK;
    *normalized = remat_alloc(tokenizer->context, result.length + 1, 1);
    if (!*normalized)
        return REMAT_NO_MEMORY;
    memcpy(*normalized, result.bytes, result.length);
    (*normalized)[result.length] = '\0';
    return REMAT_OK;
}

static remat_status add_entry(remat_tokenizer *tokenizer, const added_entry *entry, uint32_t *next,
                              const remat_place *place)
{
    added_token token = entry->token;
    const added_token *earlier = added_tokens_find(&tokenizer->added, token.content);
    token.id = earlier ? earlier->id : vocabulary_find(&tokenizer->model.tokens, token.content, strlen(token.content));
    if (token.id == NO_TOKEN)
        token.id = (*next)++;
    if (token.id != entry->token.id) {
        remat_place here = *place;
        here.line = entry->line;
        remat_warn(tokenizer->context, &here, "the token '%.60s' gets the id %u, not %u: ids follow each other",
                   token.content, token.id, entry->token.id);
    }
    if (token.normalized)
        REMAT_TRY(normalize_content(tokenizer, token.content, &token.normalized_content));
    remat_status status = added_tokens_add(&tokenizer->added, &token);
    remat_text_release(tokenizer->context, token.normalized_content);
    return status;
}

remat_status tokenizer_ready(remat_tokenizer *tokenizer, const added_entry *entries, size_t count,
                             const remat_place *place)
{
    uint32_t next = (uint32_t)tokenizer->model.tokens.token_count;
    if (count > MOST_ADDED)
        return remat_fail(tokenizer->context, REMAT_BAD_INPUT, place, "there are more than %d added tokens",
                          MOST_ADDED);
    for (size_t i = 0; i < count; i++)
        if (entries[i].token.content[0])
            REMAT_TRY(add_entry(tokenizer, &entries[i], &next, place));
    REMAT_TRY(added_tokens_ready(&tokenizer->added));
    return bpe_ready(&tokenizer->model);
}

/* ---- tokens ---- */

uint64_t remat_tokenizer_size(const remat_tokenizer *tokenizer)
{
    const added_tokens *added = &tokenizer->added;
    uint64_t ids = tokenizer->model.tokens.id_count;
    uint64_t last = added->count ? (uint64_t)added->tokens[added->count - 1].id + 1 : 0;
    return last > ids ? last : ids;
}

const char *remat_tokenizer_token(const remat_tokenizer *tokenizer, int32_t id)
{
    const added_token *added = id < 0 ? NULL : added_tokens_at(&tokenizer->added, (uint32_t)id);
    const vocabulary_token *token = id < 0 ? NULL : vocabulary_at(&tokenizer->model.tokens, (uint32_t)id);
    return added ? added->content : token ? vocabulary_text(&tokenizer->model.tokens, token) : NULL;
}

int32_t remat_tokenizer_find(const remat_tokenizer *tokenizer, const char *token)
{
    const added_token *added = added_tokens_find(&tokenizer->added, token);
    uint32_t id = added ? added->id : vocabulary_find(&tokenizer->model.tokens, token, strlen(token));
    return id == NO_TOKEN ? -1 : (int32_t)id;
}

int remat_tokenizer_is_special(const remat_tokenizer *tokenizer, int32_t id)
{
    const added_token *added = id < 0 ? NULL : added_tokens_at(&tokenizer->added, (uint32_t)id);
    return added && added->special;
}
