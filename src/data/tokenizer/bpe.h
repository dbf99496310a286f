/* Byte pair encoding: a word becomes tokens of one character each, and neighbours are merged, the pair that stands first in
 * the list of merges first. */
#ifndef REMAT_DATA_TOKENIZER_BPE_H
#define REMAT_DATA_TOKENIZER_BPE_H

#include "base/heap.h"
#include "data/tokenizer/vocabulary.h"

/* Tokens of a text, and the bytes that each was made from. */
typedef struct bpe_tokens {
    uint32_t *ids, *lengths;
    size_t count, id_capacity, length_capacity;
} bpe_tokens;

typedef struct bpe_merge {
    uint64_t pair; /* the ids of left and right */
    uint32_t rank, id;
} bpe_merge;

typedef struct bpe {
    remat_context *context;
    vocabulary tokens;
    bool byte_level;    /* characters are bytes */
    bool byte_fallback; /* characters that are no tokens become the tokens <0x00> ... <0xFF> */
    bool fuse_unknown, ignore_merges;
    uint32_t unknown;  /* id; NO_TOKEN: unknown characters are dropped */
    bpe_merge *merges; /* a hash table */
    size_t merge_slots;
    unsigned merge_shift;
    size_t merge_count;
    uint32_t byte_ids[256]; /* of single bytes, or of the tokens of byte_fallback */
    /* Where merges never reach across it, a word of any length is cut before this character without changing the tokens. */
    uint32_t boundary; /* of one word; 0: none */
    struct bpe_cached *cache;
    bpe_tokens scratch;
    struct bpe_links *links;
    size_t link_capacity;
    item_heap waiting; /* pairs of a long word: by rank, then by place */
} bpe;

void bpe_begin(bpe *model, remat_context *context);
void bpe_end(bpe *model);

/* Makes the table for this many merges; then each is added with its rank. A pair that is there already gets the new rank. */
remat_status bpe_make_merges(bpe *model, size_t count);
void bpe_add_merge(bpe *model, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);

/* What encoding needs, when vocabulary and merges are complete. */
remat_status bpe_ready(bpe *model);

/* Appends the tokens of a word: well-formed UTF-8. */
remat_status bpe_encode(bpe *model, const unsigned char *word, size_t length, bpe_tokens *to);

remat_status bpe_tokens_add(remat_context *context, bpe_tokens *to, uint32_t id, uint32_t length);
void bpe_tokens_end(remat_context *context, bpe_tokens *tokens);

#endif
