/* The merging of one word's tokens. */
#ifndef REMAT_DATA_TOKENIZER_BPE_MERGE_H
#define REMAT_DATA_TOKENIZER_BPE_MERGE_H

#include "data/tokenizer/bpe.h"

/* NULL: the two are not merged. */
const bpe_merge *bpe_find_merge(const bpe *model, uint32_t left, uint32_t right);

/* Merges the tokens in the scratch until no pair is left to merge. */
remat_status bpe_merge_all(bpe *model);

void bpe_merge_end(bpe *model);

#endif
