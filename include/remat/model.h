/* Remat: models.
 *
 * A model is a list of named layers with properties as text, built by calls or read from an INI file (docs/formats.md;
 * whatever the file can say, the calls can):
 *
 *     remat_model *model;
 *     remat_model_create(ctx, &model);
 *     remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:784"));
 *     remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=512", "activation=relu"));
 *     remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=10"));
 *     remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss"));
 *     remat_model_add_block(model, REMAT_PROPERTIES("fc1", "out"));
 *     remat_model_set(model, REMAT_PROPERTIES("batch_size=32", "epochs=10"));
 *     remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.001"));
 *     remat_model_compile(model);
 *
 * A compiled model knows every shape, parameter and byte; it is trained by a trainer (train.h). Layers run in the order
 * in which they were added; a layer reads the one before it unless `input_layers=a,b` says otherwise. */
#ifndef REMAT_MODEL_H
#define REMAT_MODEL_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_model remat_model;

/* A list of texts that ends with NULL. */
#define REMAT_PROPERTIES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* An empty model. The caller destroys it, after its trainers and before the context. NULL is fine. */
remat_status remat_model_create(remat_context *context, remat_model **model);
void remat_model_destroy(remat_model *model);

/* A model from an INI file, compiled. Messages name the file and the line. REMAT_IO, REMAT_BAD_INPUT. */
remat_status remat_model_load(remat_context *context, const char *path, remat_model **model);
remat_status remat_model_read(remat_context *context, FILE *stream, const char *name, remat_model **model);

/* Appends a layer. Properties are "key=value"; `name` must be unique, and is made from the type where it is missing.
 * REMAT_INVALID names the layer and the property. Every call copies its texts. */
remat_status remat_model_add_layer(remat_model *model, const char *type, const char *const *properties);

/* Declares a block: these layers are recomputed together in the backward pass; the first one's input and the last one's
 * output are kept. They must be consecutive in the order of execution and belong to no other block. REMAT_INVALID for an
 * unknown layer, for layers that are not consecutive or in two blocks, and once the model is compiled. */
remat_status remat_model_add_block(remat_model *model, const char *const *layers);

/* The keys of the file's sections [Model], [Optimizer] and [Dataset]. */
remat_status remat_model_set(remat_model *model, const char *const *properties);
remat_status remat_model_set_optimizer(remat_model *model, const char *type, const char *const *properties);
remat_status remat_model_set_dataset(remat_model *model, const char *type, const char *const *properties);

/* Connects the layers and finds all shapes. No layers and blocks can be added afterwards. */
remat_status remat_model_compile(remat_model *model);

/* What a compiled model consists of: composite layers (attention) stand as their parts. */
typedef struct remat_model_layer {
    const char *name, *type;
    uint64_t output_shape[3]; /* channels, height, width of one sample */
    uint64_t parameters;      /* values; those shared with another layer count there */
    uint64_t output_bytes;    /* for the batch; 0 where the output is only a view of the input */
    uint64_t saved_bytes;     /* what is kept for the backward besides inputs and output */
    uint64_t workspace_bytes; /* the most that one of its steps needs */
    const char *block;        /* "" where none */
    /* The execution order of five; REMAT_NOWHERE where the layer has no such step. */
    uint64_t forward, recompute, gradient, derivative, apply;
} remat_model_layer;
size_t remat_model_layer_count(const remat_model *model);
remat_status remat_model_get_layer(const remat_model *model, size_t position, remat_model_layer *layer);
uint64_t remat_model_batch(const remat_model *model);
uint64_t remat_model_budget(const remat_model *model);          /* bytes; REMAT_NO_BUDGET (plan.h) where it has none */
uint64_t remat_model_parameter_count(const remat_model *model); /* trained values */

/* The layer types there are with what they do, for people or as JSON (docs/formats.md). With a `type`, that one alone with
 * its inputs and properties, which JSON has always. REMAT_INVALID where there is no such type. */
remat_status remat_layer_types_write(remat_context *context, const char *type, FILE *stream, bool json);

/* For people, or as JSON: layers, shapes, parameters, bytes; and the five steps of every layer with the lives of all
 * tensors that follow from them. */
remat_status remat_model_write_summary(const remat_model *model, FILE *stream, bool json);
remat_status remat_model_write_order(const remat_model *model, FILE *stream, bool json);

#ifdef __cplusplus
}
#endif
#endif
