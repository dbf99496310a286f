/* Added tokens, such as <|im_start|>: they are found in a text before anything else becomes a token. Where several could
 * begin, the longest does. */
#ifndef REMAT_DATA_TOKENIZER_ADDED_TOKENS_H
#define REMAT_DATA_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>

#include "base/error.h"

typedef struct added_token {
    uint32_t id;
    char *content;
    char *normalized_content; /* of a normalized token; NULL: the same as content */
    bool single_word;         /* only where no letter or digit is beside it */
    bool lstrip, rstrip;      /* takes the blanks before it, behind it */
    bool normalized;          /* found in the normalized text */
    bool special;
} added_token;

/* Finds tokens in a text: a tree of their bytes. */
typedef struct token_finder {
    struct finder_node *nodes;
    size_t node_count, node_capacity;
    bool begins[256]; /* bytes with which a token begins */
} token_finder;

typedef struct added_tokens {
    remat_context *context;
    added_token *tokens; /* each id once, by id */
    size_t count, capacity;
    token_finder raw, normalized;
} added_tokens;

void added_tokens_begin(added_tokens *added, remat_context *context);
void added_tokens_end(added_tokens *added);

/* Adds a copy of a token, in place of an earlier one with its id. */
remat_status added_tokens_add(added_tokens *added, const added_token *token);
/* Makes the finders when all tokens have been added. */
remat_status added_tokens_ready(added_tokens *added);

/* The token of an id, and of a content; NULL: none. */
const added_token *added_tokens_at(const added_tokens *added, uint32_t id);
const added_token *added_tokens_find(const added_tokens *added, const char *content);

/* The text that stands for the token when it is decoded. */
static inline const char *added_token_text(const added_token *token)
{
    return token->normalized_content ? token->normalized_content : token->content;
}

/* The next token in a text. */
typedef struct token_match {
    const added_token *token; /* NULL: none is left */
    size_t start, end;        /* with the blanks that it takes */
    size_t next;              /* where the search goes on */
} token_match;
/* Searches from `from` on; `taken` is where the last match ended, which may be behind `from`. */
token_match added_tokens_search(const added_tokens *added, bool normalized, const unsigned char *text, size_t length,
                                size_t from, size_t taken);

#endif
