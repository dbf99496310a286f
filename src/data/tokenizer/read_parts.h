/* Reads normalizers, pre-tokenizers, post-processors and decoders of a tokenizer.json. */
#ifndef REMAT_DATA_TOKENIZER_READ_PARTS_H
#define REMAT_DATA_TOKENIZER_READ_PARTS_H

#include "base/json_reader.h"
#include "data/tokenizer/tokenizer_object.h"

typedef enum part_list_kind { LIST_NORMALIZER, LIST_PRE_TOKENIZER, LIST_POST_PROCESSOR, LIST_DECODER } part_list_kind;

/* Reads the next value, an object or null, into the lists of the tokenizer. REMAT_BAD_INPUT names the key, and what is not
 * supported. */
remat_status tokenizer_read_parts(json_reader *reader, remat_tokenizer *tokenizer, part_list_kind kind);

/* Adds a part whose pattern is compiled from `pattern`; `literal`: it is a text to find as it is. The strings are copied.
 * `content` may be NULL. */
remat_status tokenizer_add_part(remat_context *context, part_list *list, token_part part, const char *pattern,
                                bool literal, const char *content, const remat_place *place);

#endif
