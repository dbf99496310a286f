/* What of a model is trained: all of it, the layers that patterns name, or adapters (LoRA) on the layers that patterns name. */
#ifndef REMAT_MODEL_TUNING_H
#define REMAT_MODEL_TUNING_H

#include <stdio.h>

#include "base/text_pool.h"
#include "layers/lora.h"

typedef struct pattern_list {
    const char *const *items;
    size_t count;
} pattern_list;

typedef struct model_tuning {
    bool uses_lora;
    uint64_t rank;
    double alpha, dropout;
    pattern_list targets; /* of LoRA */
    const char *file;     /* that says so: adapter_config.json; NULL: a setting */
    pattern_list trained; /* layers that are trained; with neither these nor LoRA, all are */
} model_tuning;

/* Reads "rank=8,alpha=16,dropout=0,targets=q_proj+v_proj". The texts are in the pool. REMAT_INVALID names what is wrong. */
remat_status tuning_read_lora(text_pool *pool, const char *text, model_tuning *tuning);
/* Reads "layers.2?.*+lm_head". */
remat_status tuning_read_trained(text_pool *pool, const char *text, model_tuning *tuning);
/* Reads adapter_config.json of a folder in PEFT's layout, or from a stream. REMAT_IO, REMAT_BAD_INPUT. */
remat_status tuning_read_adapter_config(text_pool *pool, FILE *stream, const char *name, model_tuning *tuning);
remat_status tuning_read_adapter(text_pool *pool, const char *folder, model_tuning *tuning);

/* The first pattern that matches a layer's name; NULL: none. A pattern is a name in which * and ? stand for any letters, and
 * matches the whole name or what follows a dot in it: "q_proj" and "self_attn.*" match "model.layers.0.self_attn.q_proj". */
const char *const *tuning_find(const pattern_list *patterns, const char *name);

/* Whether a linear layer gets an adapter: a pattern matches it. "all-linear" is all of them but the head. */
bool tuning_is_target(const model_tuning *tuning, const char *name);
/* Whether a layer that is no target keeps its parameters as they are. */
bool tuning_freezes(const model_tuning *tuning, const char *name);

#endif
