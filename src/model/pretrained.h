/* Models in Hugging Face's layout: a folder with config.json, weights and a tokenizer. What config.json says becomes a model file:
 * the text that a user could have written. So everything that works with model files works with folders. */
#ifndef REMAT_MODEL_PRETRAINED_H
#define REMAT_MODEL_PRETRAINED_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text_pool.h"

typedef enum pretrained_family {
    FAMILY_GPT2,
    FAMILY_LLAMA,
    FAMILY_MISTRAL,
    FAMILY_QWEN2,
    FAMILY_QWEN3
} pretrained_family;

/* How angles of positions are stretched: the keys of rope_scaling. */
typedef struct pretrained_rope {
    const char *scaling; /* as rotary_embedding calls it; "none" */
    double theta, factor, low, high, attention_factor;
    uint64_t original_length;
} pretrained_rope;

typedef struct pretrained_config {
    pretrained_family family;
    uint64_t vocabulary, width, inner, layers, heads, key_heads, head_size;
    uint64_t positions; /* the longest sequence */
    uint64_t window;    /* 0: none */
    const char *dtype;  /* of the weights, as config.json has it; "": it does not say */
    double epsilon, init_scale;
    const char *activation; /* as our layers call it */
    bool query_bias, output_bias, inner_bias, tied;
    pretrained_rope rope;
} pretrained_config;

/* Reads config.json. `name` stands for the stream in messages; texts are in the pool. REMAT_BAD_INPUT names the key. */
remat_status pretrained_config_read(text_pool *pool, FILE *stream, const char *name, pretrained_config *config);

/* What a model file is written for. */
typedef struct pretrained_use {
    const char *name; /* "": none */
    uint64_t length;  /* tokens of a sequence */
    bool positions;   /* the model reads them: several samples share a row, or there is a cache */
    uint64_t cache;   /* rows of keys and values; 0: none */
} pretrained_use;

/* Writes the model file as snprintf would: returns how many bytes it has. */
size_t pretrained_write_ini(const pretrained_config *config, const pretrained_use *use, char *text, size_t room);

/* Whether a path is a folder: a model in this layout, or nothing that can be read. */
bool pretrained_is_folder(const char *path);

#endif
