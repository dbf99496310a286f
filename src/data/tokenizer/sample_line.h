/* One line of a file of samples. */
#ifndef REMAT_DATA_TOKENIZER_SAMPLE_LINE_H
#define REMAT_DATA_TOKENIZER_SAMPLE_LINE_H

#include "data/tokenizer/chat_template.h"

/* Texts are copies; NULL where a key is missing. A struct of zeros is empty. */
typedef struct sample_line {
    char *text, *prompt, *completion;
    chat_message *messages; /* NULL: none */
    size_t message_count, message_capacity;
} sample_line;

/* Reads the object on a line, and checks that it is a sample. REMAT_BAD_INPUT names the file, the line and the key. */
remat_status sample_line_read(remat_context *context, char *text, size_t length, const char *file, uint64_t line,
                              sample_line *sample);
void sample_line_end(remat_context *context, sample_line *sample);

#endif
