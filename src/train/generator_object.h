/* What a generator consists of. Two networks of the same model share the weights, the cache and the arena: one runs several tokens of a
 * prompt at a time, the other one token. */
#ifndef REMAT_TRAIN_GENERATOR_OBJECT_H
#define REMAT_TRAIN_GENERATOR_OBJECT_H

#include <remat/generator.h>
#include <remat/model.h>

#include "data/tokenizer/chat_template.h"
#include "data/tokenizer/tokenizer_config.h"
#include "train/held_weights.h"
#include "train/host_view.h"
#include "train/trainer_object.h"

/* A network for runs of `length` tokens. */
typedef struct generator_lane {
    remat_model *model;
    remat_network *network;
    remat_program *program;
    placed_graph plan;
    remat_executor *executor;
    staging staged;
    uint64_t length;
} generator_lane;

enum { LANE_CHUNK, LANE_TOKEN, LANES };

/* A token, for drawing. */
typedef struct likely_token {
    float logit;
    int32_t id;
} likely_token;

struct remat_generator {
    remat_context *context;
    char *folder;
    generator_lane lanes[LANES];
    backend *device;
    backend_queue *queue;
    held_weights weights;
    backend_memory arena, block;
    host_view result; /* what the last logits point to */
    uint64_t cache, cache_bytes, vocabulary;
    uint64_t used; /* tokens of the text so far */
    likely_token *likely;

    /* Made when the first text is written. */
    remat_tokenizer *tokenizer;
    tokenizer_config config;
    chat_template *template;
};

/* generator_text.c: loads the tokenizer of the folder, if it is not there yet. */
remat_status generator_load_tokenizer(remat_generator *generator);
remat_status generator_load_template(remat_generator *generator); /* for messages; the tokenizer is loaded */

/* generator_draw.c: draws a token; `number` counts the draws of a text. */
int32_t generator_draw(const remat_generator *generator, const float *logits, const remat_text_options *options,
                       uint64_t number);

#endif
