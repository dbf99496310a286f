/* A tokenizer as it is in memory. */
#ifndef REMAT_DATA_TOKENIZER_TOKENIZER_OBJECT_H
#define REMAT_DATA_TOKENIZER_TOKENIZER_OBJECT_H

#include <remat/tokenizer.h>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/token_part.h"
#include "data/tokenizer/tokenizer_decode.h"

typedef struct token_list {
    uint32_t *ids;
    size_t count, capacity;
} token_list;

struct remat_tokenizer {
    remat_context *context;
    part_list normalizers, pre_tokenizers, decoders;
    bpe model;
    added_tokens added;
    bool is_trained;           /* here, not read */
    char *path;                /* of the file that it was read from; NULL: of none */
    token_list before, behind; /* special tokens around every text */
    bpe_tokens out;            /* of the last text; lengths hold where each token begins */
    decoded_text decoded[2];   /* the last text that was decoded, and the one before the last decoder */
};

/* The regular expression of GPT-2, which byte-level tokenizers use unless they say otherwise. */
#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* An empty tokenizer, without tables. */
remat_status tokenizer_create(remat_context *context, remat_tokenizer **tokenizer);

/* Adds the added tokens of a file, in their order: ids of those that are no token of the model follow the model's.
 * The content of each is normalized where it says so. Then everything is ready to encode. `place` is for messages. */
typedef struct added_entry {
    added_token token; /* id: as the file says */
    uint64_t line;
} added_entry;
remat_status tokenizer_ready(remat_tokenizer *tokenizer, const added_entry *entries, size_t count,
                             const remat_place *place);

/* REMAT_BAD_INPUT: the text is not UTF-8, at the byte that the message says. */
remat_status tokenizer_check_text(remat_context *context, const char *text, size_t bytes);

/* Encodes a text that is well-formed UTF-8, without special tokens around it, into `out`. */
remat_status tokenizer_encode_text(remat_tokenizer *tokenizer, const unsigned char *text, size_t length);

#endif
