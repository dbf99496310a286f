/* The tokens of a tokenizer: their texts by id, and their ids by text.
 *
 * A byte-level tokenizer writes every byte of a token as a letter: Ġ for a blank, say. Such a token has a text, with these
 * letters, and its bytes. In other vocabularies the bytes of a token are its text. */
#ifndef REMAT_DATA_TOKENIZER_VOCABULARY_H
#define REMAT_DATA_TOKENIZER_VOCABULARY_H

#include <stdbool.h>

#include "base/error.h"

#define NO_TOKEN UINT32_MAX

typedef struct vocabulary_token {
    uint32_t id;
    uint32_t text, text_length;  /* where it begins in the texts; terminated */
    uint32_t bytes, byte_length; /* the same of its bytes */
    bool has_bytes;              /* false: a byte-level token with other letters, which no text becomes */
} vocabulary_token;

typedef struct vocabulary {
    remat_context *context;
    char *texts;
    size_t text_bytes, text_capacity;
    vocabulary_token *tokens; /* in the order of the file */
    size_t token_count, token_capacity;
    uint32_t *by_id; /* indices of tokens; NO_TOKEN: none */
    size_t id_count; /* one more than the largest id */
    uint32_t *by_text, *by_bytes;
    size_t slots; /* of each of the two, a power of 2 */
} vocabulary;

void vocabulary_begin(vocabulary *tokens, remat_context *context);
void vocabulary_end(vocabulary *tokens);

/* Adds a token; ids and texts are compared by vocabulary_index. */
remat_status vocabulary_add(vocabulary *tokens, const char *text, uint32_t id);

/* Makes the tables when all tokens were added. REMAT_BAD_INPUT at `place`: a text or an id is there twice, or the ids
 * leave large gaps. It may be called again after more tokens were added. */
remat_status vocabulary_index(vocabulary *tokens, bool byte_level, const remat_place *place);

/* The id of a text, and of bytes; NO_TOKEN: none. */
uint32_t vocabulary_find(const vocabulary *tokens, const char *text, size_t length);
uint32_t vocabulary_find_bytes(const vocabulary *tokens, const unsigned char *bytes, size_t length);

/* The token of an id; NULL: none. */
const vocabulary_token *vocabulary_at(const vocabulary *tokens, uint32_t id);

static inline const char *vocabulary_text(const vocabulary *tokens, const vocabulary_token *token)
{
    return tokens->texts + token->text;
}

#endif
