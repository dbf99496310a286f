/* `remat generate DIR`: texts of a language model in Hugging Face's layout. */
#ifndef REMAT_CLI_GENERATE_FOLDER_H
#define REMAT_CLI_GENERATE_FOLDER_H

#include <remat/generator.h>

/* Prints the prompt and its continuation. Says on stderr what is wrong, and how much memory it takes unless `quiet`. */
remat_status generate_folder(remat_context *context, const char *folder, const remat_generator_options *options,
                             const remat_text_options *text, bool quiet);

#endif
