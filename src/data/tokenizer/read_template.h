/* The post-processor TemplateProcessing: special tokens around every text. */
#ifndef REMAT_DATA_TOKENIZER_READ_TEMPLATE_H
#define REMAT_DATA_TOKENIZER_READ_TEMPLATE_H

#include "base/json_reader.h"
#include "data/tokenizer/tokenizer_object.h"

/* A name in the template; NULL: the text itself. */
typedef struct template_item {
    char *name;
} template_item;

/* The ids of a name. */
typedef struct template_token {
    char *name;
    token_list ids;
} template_token;

typedef struct template_fields {
    template_item *items;
    template_token *tokens;
    size_t item_count, item_capacity, token_count, token_capacity;
} template_fields;

/* Read the values of `single` and `special_tokens`. */
remat_status template_read_single(json_reader *reader, template_fields *fields);
remat_status template_read_tokens(json_reader *reader, template_fields *fields);

/* Puts the tokens of the template around what the tokenizer has. */
remat_status template_apply(json_reader *reader, const template_fields *fields, remat_tokenizer *tokenizer);

void template_end(remat_context *context, template_fields *fields);

/* Appends an id to a list. */
remat_status token_list_add(remat_context *context, token_list *list, uint32_t id);

#endif
