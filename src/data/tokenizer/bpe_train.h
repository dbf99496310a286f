/* Finds the merges of a byte-level tokenizer from words and how often each occurs. */
#ifndef REMAT_DATA_TOKENIZER_BPE_TRAIN_H
#define REMAT_DATA_TOKENIZER_BPE_TRAIN_H

#include "data/tokenizer/byte_map.h"

typedef struct trained_merge {
    uint32_t left, right, id;
} trained_merge;

/* What is asked for, and what was found. Ids below `first` are not used; then come the bytes in the order of their letters,
 * and the tokens that are merged. */
typedef struct bpe_training {
    remat_context *context;
    const byte_map *words;
    const uint64_t *counts; /* of the words */
    uint32_t first;
    uint64_t vocabulary, least;
    byte_map tokens; /* number i is the id first + i */
    trained_merge *merges;
    size_t merge_count, merge_capacity;
} bpe_training;

remat_status bpe_train(bpe_training *training);
void bpe_training_end(bpe_training *training);

#endif
