/* What the files beside a tokenizer.json say: tokenizer_config.json and chat_template.jinja. */
#ifndef REMAT_DATA_TOKENIZER_TOKENIZER_CONFIG_H
#define REMAT_DATA_TOKENIZER_TOKENIZER_CONFIG_H

#include "base/error.h"

/* Texts are NULL where they are not given. A struct of zeros is empty. */
typedef struct tokenizer_config {
    char *bos_token, *eos_token;
    char *chat_template;
    char *template_name; /* the file that it came from */
} tokenizer_config;

/* Reads the files in a folder; those that are not there say nothing. */
remat_status tokenizer_config_read(remat_context *context, const char *folder, tokenizer_config *config);
void tokenizer_config_end(remat_context *context, tokenizer_config *config);

#endif
