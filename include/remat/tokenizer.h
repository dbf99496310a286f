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
 * tokens. A file that has anything else is refused; the message names it.
 *
 * Threads: a tokenizer may be used by one thread at a time, because it caches words. */
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

/* Encodes a UTF-8 text of `bytes` bytes. `special` not 0: with the special tokens that the tokenizer puts around every
 * text, such as <s>. The ids belong to the tokenizer and are valid until the next call on it. REMAT_BAD_INPUT: the text
 * is not UTF-8; the message says where. REMAT_NO_MEMORY. */
remat_status remat_tokenizer_encode(remat_tokenizer *tokenizer, const char *text, size_t bytes, int special,
                                    const int32_t **ids, size_t *count);
/* For each token of the last text that was encoded: the byte of the text at which it starts. */
const uint32_t *remat_tokenizer_starts(const remat_tokenizer *tokenizer);

/* Decodes ids; unknown ids are left out. `special` not 0: special tokens are not left out. The text has *bytes bytes
 * and a terminating 0, belongs to the tokenizer and is valid until the next call on it. It is always valid UTF-8.
 * REMAT_NO_MEMORY. */
remat_status remat_tokenizer_decode(remat_tokenizer *tokenizer, const int32_t *ids, size_t count, int special,
                                    const char **text, size_t *bytes);

/* One more than the largest id: how many rows the embedding of a model needs at least. */
uint64_t remat_tokenizer_size(const remat_tokenizer *tokenizer);
/* The token with an id, as the file writes it. It belongs to the tokenizer. NULL: there is none. */
const char *remat_tokenizer_token(const remat_tokenizer *tokenizer, int32_t id);
/* The id of a token as the file writes it; -1: there is none. */
int32_t remat_tokenizer_find(const remat_tokenizer *tokenizer, const char *token);
/* Whether an id is a special token. */
int remat_tokenizer_is_special(const remat_tokenizer *tokenizer, int32_t id);

/* ---- training ---- */

typedef struct remat_tokenizer_options {
    size_t struct_size;
    uint64_t vocabulary; /* the number of tokens, including the 256 bytes and special tokens. Default 1000 */
    uint64_t least;      /* pairs that occur less often are not merged. Default 2 */
    /* Special tokens, separated by blanks. Their ids are 0, 1 and so on. Default "<|endoftext|>"; "": none */
    const char *special;
    const char *pattern; /* the regular expression that cuts the text into words. NULL: GPT-2's */
} remat_tokenizer_options;
void remat_tokenizer_options_init_sized(remat_tokenizer_options *options, size_t size);
static inline void remat_tokenizer_options_init(remat_tokenizer_options *options)
{
    remat_tokenizer_options_init_sized(options, sizeof *options);
}

/* Trains a byte-level tokenizer on the texts in these files. The most frequent pair of tokens becomes a new token,
 * again and again; of equally frequent pairs, the one with the smaller ids. The vocabulary is smaller than asked for if
 * the texts have no more pairs. `options` NULL: the defaults. REMAT_IO, REMAT_BAD_INPUT (a file that is not UTF-8),
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_tokenizer_train(remat_context *context, const char *const *paths, size_t path_count,
                                   const remat_tokenizer_options *options, remat_tokenizer **tokenizer);

/* Writes a trained tokenizer as tokenizer.json. `save` replaces the file only when everything was written.
 * REMAT_INVALID: the tokenizer was read from a file. REMAT_IO. */
remat_status remat_tokenizer_write(const remat_tokenizer *tokenizer, FILE *stream);
remat_status remat_tokenizer_save(const remat_tokenizer *tokenizer, const char *path);

/* ---- samples for fine-tuning ---- */

/* The samples of a file with a JSON object on every line:
 *
 *   {"text": "..."}                                          all of it is learned
 *   {"prompt": "...", "completion": "..."}                   the completion is learned
 *   {"messages": [{"role": "user", "content": "..."}, ...]}  what the assistant says is learned
 *
 * Other keys are ignored, and so are empty lines. The tokens of a text and of a prompt with its completion are those of
 * remat_tokenizer_encode with special tokens, then the end token. Messages are written as the chat template of the
 * model says. The end token and the chat template are those of `tokenizer_config.json` (or `chat_template.jinja`) in
 * the folder of the tokenizer. A token that starts before the completion is not learned.
 *
 * Samples become rows of `length` tokens: inputs, and for every input the token that follows it as its label. A label
 * is -1 where nothing is learned: in prompts, at the end of a row, after the last token of a sample. A sample of more
 * than `length` + 1 tokens is cut; if nothing is left to learn, it is dropped. With `pack`, several samples share a row
 * as long as they fit, in the order of the file; otherwise each has its own. `segments` numbers the samples of a row
 * from 0, with -1 after the last, so that attention need not cross them; `positions` counts from 0 in every sample. */
typedef struct remat_samples remat_samples;

typedef struct remat_samples_options {
    size_t struct_size;
    uint64_t length; /* tokens of a row. Default 256 */
    int pack;        /* not 0: several samples share a row. Default 1 */
} remat_samples_options;
void remat_samples_options_init_sized(remat_samples_options *options, size_t size);
static inline void remat_samples_options_init(remat_samples_options *options)
{
    remat_samples_options_init_sized(options, sizeof *options);
}

/* Reads all samples. The tokenizer is used during the call only. REMAT_BAD_INPUT names the file and the line. REMAT_IO,
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_samples_load(remat_tokenizer *tokenizer, const char *path, const remat_samples_options *options,
                                remat_samples **samples);
void remat_samples_destroy(remat_samples *samples);

typedef struct remat_samples_figures {
    uint64_t samples;   /* in the file */
    uint64_t truncated; /* of these, cut to length + 1 tokens */
    uint64_t dropped;   /* of these, without a token to learn */
    uint64_t rows;
    uint64_t tokens;  /* inputs in all rows, without those after the last sample of a row */
    uint64_t learned; /* labels that are not -1 */
} remat_samples_figures;
void remat_samples_figures_get_sized(const remat_samples *samples, remat_samples_figures *figures, size_t size);
static inline void remat_samples_figures_get(const remat_samples *samples, remat_samples_figures *figures)
{
    remat_samples_figures_get_sized(samples, figures, sizeof *figures);
}

/* A row by its position from 0: four arrays of `length` numbers. They belong to the samples. REMAT_INVALID past the
 * end. */
typedef struct remat_samples_row {
    const int32_t *ids, *labels, *positions, *segments;
} remat_samples_row;
remat_status remat_samples_row_get_sized(const remat_samples *samples, uint64_t row, remat_samples_row *to,
                                         size_t size);
static inline remat_status remat_samples_row_get(const remat_samples *samples, uint64_t row, remat_samples_row *to)
{
    return remat_samples_row_get_sized(samples, row, to, sizeof *to);
}

#ifdef __cplusplus
}
#endif
#endif
