/* Normalizers, pre-tokenizers and decoders: what a text goes through on its way to tokens and back. Each list of a file is
 * flat here: a sequence in a sequence is the same as one. */
#ifndef REMAT_DATA_TOKENIZER_TOKEN_PART_H
#define REMAT_DATA_TOKENIZER_TOKEN_PART_H

#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/token_text.h"

typedef enum part_kind {
    PART_NFC,
    PART_PREPEND,
    PART_REPLACE, /* also a decoder */
    PART_SPLIT,
    PART_BYTE_LEVEL, /* pre-tokenizer and decoder */
    PART_METASPACE,  /* pre-tokenizer and decoder */
    PART_BYTE_FALLBACK,
    PART_FUSE,
    PART_STRIP,
} part_kind;

/* What becomes of the matches of a pattern. */
typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS,
} split_behavior;

typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

typedef struct token_part {
    part_kind kind;
    split_pattern *pattern;
    char *content; /* what is prepended or put in; the mark of a blank; what is stripped */
    split_behavior behavior;
    bool invert, splits, add_prefix_space;
    prepend_scheme scheme;
    uint32_t start, stop; /* characters that are stripped */
    text_buffer buffer;   /* the text behind this part */
} token_part;

typedef struct part_list {
    token_part *parts;
    size_t count, capacity;
} part_list;

void part_list_end(remat_context *context, part_list *list);

/* Runs normalizers. The result is a part of the text or of a buffer of the list, until the next call. */
remat_status parts_normalize(remat_context *context, part_list *list, text_span from, text_span *normalized);

/* Runs pre-tokenizers, and gives all words in order to `take`. */
typedef remat_status (*word_fn)(void *user, const text_span *word);
remat_status parts_split(remat_context *context, part_list *list, text_span from, word_fn take, void *user);

#endif
