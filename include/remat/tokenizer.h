/* Remat: tokenizers.
 *
 * A tokenizer turns a text into the numbers that a language model reads, and back. It is read from `tokenizer.json`, the
 * file of Hugging Face's library `tokenizers`, and gives the same numbers and texts as that library does:
 *
 *     remat_tokenizer *tokenizer;
 *     const int32_t *ids;
 *     size_t count;
 *     if (remat_tokenizer_load(ctx, "model", &tokenizer) == REMAT_OK &&
 *         remat_tokenizer_encode(tokenizer, "Hello", 5, 1, &ids, &count) == REMAT_OK)
 *         printf("%zu tokens\n", count);
 *     remat_tokenizer_destroy(tokenizer);
 *
 * These are read: byte pair encoding of bytes (GPT-2, Llama 3, Qwen) and of characters (Llama 2, Mistral), with the
 * normalizers NFC, Prepend and Replace, the pre-tokenizers ByteLevel, Split, Digits and Metaspace, the post-processors
 * TemplateProcessing and ByteLevel, the decoders ByteLevel, Metaspace, Replace, ByteFallback, Fuse and Strip, and added
 * tokens. A file that has something else is refused, with its name.
 *
 * Threads: one tokenizer is used by one thread at a time, for it keeps the words that it met. */
#ifndef REMAT_TOKENIZER_H
#define REMAT_TOKENIZER_H

#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_tokenizer remat_tokenizer;

/* Reads a tokenizer from a file, or from `tokenizer.json` in a folder. REMAT_IO; REMAT_BAD_INPUT names the file, the line
 * and the key; REMAT_NO_MEMORY. */
remat_status remat_tokenizer_load(remat_context *context, const char *path, remat_tokenizer **tokenizer);
/* The same from a stream; `name` stands for it in messages. */
remat_status remat_tokenizer_read(remat_context *context, FILE *stream, const char *name, remat_tokenizer **tokenizer);
void remat_tokenizer_destroy(remat_tokenizer *tokenizer);

/* Encodes a text of `bytes` bytes, which is UTF-8. `special` not 0: with the special tokens that the tokenizer puts around
 * every text, such as <s>. The ids belong to the tokenizer until the next call on it. REMAT_BAD_INPUT: the text is not
 * UTF-8, and the message says where. REMAT_NO_MEMORY. */
remat_status remat_tokenizer_encode(remat_tokenizer *tokenizer, const char *text, size_t bytes, int special,
                                    const int32_t **ids, size_t *count);
/* Where each of the tokens that were encoded last begins in the text, as a number of bytes. */
const uint32_t *remat_tokenizer_starts(const remat_tokenizer *tokenizer);

/* Decodes ids; those that are none of its own are left out. `special` not 0: special tokens are left in. The text has
 * *bytes bytes and a terminator, and belongs to the tokenizer until the next call on it. It is always valid UTF-8.
 * REMAT_NO_MEMORY. */
remat_status remat_tokenizer_decode(remat_tokenizer *tokenizer, const int32_t *ids, size_t count, int special,
                                    const char **text, size_t *bytes);

/* One more than the largest id: how many rows the embedding of a model needs at least. */
uint64_t remat_tokenizer_size(const remat_tokenizer *tokenizer);
/* A token as the file writes it, which belongs to the tokenizer; NULL: there is none with this id. */
const char *remat_tokenizer_token(const remat_tokenizer *tokenizer, int32_t id);
/* The id of a token as the file writes it; -1: there is none. */
int32_t remat_tokenizer_find(const remat_tokenizer *tokenizer, const char *token);
/* Whether an id is a special token. */
int remat_tokenizer_is_special(const remat_tokenizer *tokenizer, int32_t id);

/* ---- training ---- */

typedef struct remat_tokenizer_options {
    size_t struct_size;
    uint64_t vocabulary; /* tokens, with the 256 bytes and special ones. Default 1000 */
    uint64_t least;      /* pairs that occur less often are not merged. Default 2 */
    /* Special tokens, with the ids from 0 on, separated by blanks. Default "<|endoftext|>"; "": none */
    const char *special;
    const char *pattern; /* the regular expression that cuts the text into words. NULL: GPT-2's */
} remat_tokenizer_options;
void remat_tokenizer_options_init_sized(remat_tokenizer_options *options, size_t size);
static inline void remat_tokenizer_options_init(remat_tokenizer_options *options)
{
    remat_tokenizer_options_init_sized(options, sizeof *options);
}

/* Makes a byte-level tokenizer for the texts in these files. The most frequent pair of tokens becomes a new token, again and
 * again; of equally frequent pairs, the one with the smaller ids. The vocabulary is smaller than asked for where the texts
 * have no more pairs. `options` NULL: the defaults. REMAT_IO, REMAT_BAD_INPUT (a file that is not UTF-8), REMAT_INVALID,
 * REMAT_NO_MEMORY. */
remat_status remat_tokenizer_train(remat_context *context, const char *const *paths, size_t path_count,
                                   const remat_tokenizer_options *options, remat_tokenizer **tokenizer);

/* Writes a tokenizer that was trained, as a tokenizer.json. `save` replaces the file when everything was written.
 * REMAT_INVALID: the tokenizer was read from a file. REMAT_IO. */
remat_status remat_tokenizer_write(const remat_tokenizer *tokenizer, FILE *stream);
remat_status remat_tokenizer_save(const remat_tokenizer *tokenizer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
