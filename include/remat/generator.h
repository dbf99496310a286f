/* Remat: generating text with language models.
 *
 * A generator continues texts with a model in Hugging Face's layout (docs/pretrained.md). It caches the keys and values
 * of all tokens so far, so that each new token costs one run of one token:
 *
 *     remat_generator *generator;
 *     if (remat_generator_create(ctx, "Qwen2.5-0.5B", NULL, &generator) == REMAT_OK)
 *         remat_generator_write(generator, &options, print, NULL);
 *     remat_generator_destroy(generator);
 *
 * All memory is allocated by remat_generator_create. */
#ifndef REMAT_GENERATOR_H
#define REMAT_GENERATOR_H

#include <stdbool.h>

#include <remat/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_generator remat_generator;

typedef struct remat_generator_options {
    size_t struct_size;
    /* As remat_model_load_with takes them: "model.adapter=DIR", "model.frozen=int4". NULL: none. */
    const char *const *settings;
    const char *weights; /* a file or folder with the weights. NULL: the folder of the model */
    /* The longest text in tokens, prompt included. 0: 1024, or the length of the model if that is less. */
    uint64_t cache;
    uint64_t chunk;      /* tokens of a prompt that run together. Default 32 */
    unsigned threads;    /* 0: all cores */
    const char *kernels; /* as in remat_train_options. NULL: the best */
    /* 1: the tokenizer, and the chat template for messages, are loaded first: if they are missing, that is an error before weights
     * are read. */
    int writes_texts, writes_messages;
} remat_generator_options;
void remat_generator_options_init_sized(remat_generator_options *options, size_t size);
static inline void remat_generator_options_init(remat_generator_options *options)
{
    remat_generator_options_init_sized(options, sizeof *options);
}

/* `options` NULL: the defaults. REMAT_IO, REMAT_BAD_INPUT, REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_generator_create(remat_context *context, const char *folder, const remat_generator_options *options,
                                    remat_generator **generator);
void remat_generator_destroy(remat_generator *generator);

/* What a generator allocated. */
typedef struct remat_generator_figures {
    uint64_t weight_bytes;
    uint64_t cache_bytes;  /* of keys and values */
    uint64_t arena_bytes;  /* of everything that lives only within a run */
    uint64_t total_bytes;  /* the sum, and a few small areas */
    uint64_t cache;        /* tokens that fit */
    uint64_t vocabulary;   /* logits of a token */
    uint64_t mapped_bytes; /* of the weights: those that are mapped from their file (frozen=keep), and not copied */
} remat_generator_figures;
void remat_generator_get_figures_sized(const remat_generator *generator, remat_generator_figures *figures, size_t size);
static inline void remat_generator_get_figures(const remat_generator *generator, remat_generator_figures *figures)
{
    remat_generator_get_figures_sized(generator, figures, sizeof *figures);
}

/* Appends tokens to the text so far. *logits receives the logits of the next token; they belong to the generator and
 * are valid until the next call. REMAT_INVALID: there is no room for so many tokens, or one is not in the
 * vocabulary. */
remat_status remat_generator_feed(remat_generator *generator, const int32_t *tokens, size_t count,
                                  const float **logits);
/* Forgets the text. */
void remat_generator_clear(remat_generator *generator);

typedef struct remat_text_options {
    size_t struct_size;
    const char *prompt;       /* UTF-8. NULL: "" */
    int chat;                 /* not 0: the prompt is a user's message, formatted by the chat template */
    uint64_t count;           /* tokens to write at most. Default 200 */
    double temperature;       /* 0: always the most likely token. Default 0.8 */
    uint64_t top_k;           /* draw from this many of the most likely tokens. 0: all. Default 40 */
    double top_p;             /* of these, draw from the most likely whose probabilities add up to this. Default 1 */
    uint64_t seed;            /* of the draws. Default 0 */
    const char *const *stops; /* texts at which to stop; they are not written. A list that ends with NULL. NULL: none */
} remat_text_options;
void remat_text_options_init_sized(remat_text_options *options, size_t size);
static inline void remat_text_options_init(remat_text_options *options)
{
    remat_text_options_init_sized(options, sizeof *options);
}

/* Forgets the text so far and continues the prompt, until the end token of tokenizer_config.json, a stop text, `count`
 * tokens or the end of the cache. Every piece of the new text, without the prompt, is passed to `emit` as soon as it is
 * known, in whole UTF-8 characters. If `emit` returns false, the text ends. `options` NULL: the defaults.
 * REMAT_INVALID: the prompt is too long, or it is empty and the tokenizer has no beginning-of-text token.
 * REMAT_BAD_INPUT: the folder has no tokenizer or chat template that can be read. REMAT_NO_MEMORY. */
remat_status remat_generator_write(remat_generator *generator, const remat_text_options *options,
                                   bool (*emit)(void *user, const char *text, size_t bytes), void *user);

#ifdef __cplusplus
}
#endif
#endif
