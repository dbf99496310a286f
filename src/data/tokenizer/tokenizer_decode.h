/* Texts while they are decoded. */
#ifndef REMAT_DATA_TOKENIZER_TOKENIZER_DECODE_H
#define REMAT_DATA_TOKENIZER_TOKENIZER_DECODE_H

#include "base/error.h"

/* Pieces of text, one behind the other: piece i ends at ends[i]. A struct of zeros has none. */
typedef struct decoded_text {
    char *bytes;
    size_t *ends;
    size_t length, count, byte_capacity, end_capacity;
} decoded_text;

void decoded_text_end(remat_context *context, decoded_text *text);

#endif
