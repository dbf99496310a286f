/* Remat: models.
 *
 * A model is a list of named layers with properties as text. Build it by calls, or read it from an INI file
 * (docs/formats.md). Both can describe the same models:
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
 * Layers run in the order in which they were added. A layer reads the output of the layer before it, unless it has the
 * property `input_layers=a,b`. A compiled model knows every shape, parameter and byte. A trainer (remat/train.h) trains
 * it. */
#ifndef REMAT_MODEL_H
#define REMAT_MODEL_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>
#include <remat/dtype.h>

#ifdef __cplusplus
#include <initializer_list>
#define REMAT_PROPERTIES(...) (std::initializer_list<const char *>{__VA_ARGS__, nullptr}.begin())
extern "C" {
#endif

typedef struct remat_model remat_model;

/* ---- making a model ---- */

/* A list of texts that ends with NULL. In C it is valid to the end of the enclosing block, in C++ to the end of the
 * statement. */
#ifndef __cplusplus
#define REMAT_PROPERTIES(...) ((const char *const[]){__VA_ARGS__, NULL})
#endif

/* Reads a model from an INI file or an open stream, and compiles it. `name` stands for the stream in messages.
 * REMAT_IO, REMAT_BAD_INPUT (the error on the context names the file and the line), REMAT_NO_MEMORY.
 *
 * The path may also be a folder in Hugging Face's layout (docs/pretrained.md). Only its config.json is read;
 * remat_trainer_load and remat_predictor_create take the same folder for its weights. */
remat_status remat_model_load(remat_context *context, const char *path, remat_model **model);
remat_status remat_model_read(remat_context *context, FILE *stream, const char *name, remat_model **model);

/* The same with changes to the file: a list of "SECTION.KEY=VALUE" such as "model.batch_size=8" or "fc1.unit=64", as
 * REMAT_PROPERTIES makes it; NULL: none. A key that is not in the file is added. Paths are relative to the folder of
 * the model file, as in the file. REMAT_INVALID: a section does not exist, or a value is not allowed. */
remat_status remat_model_read_with(remat_context *context, FILE *stream, const char *name, const char *const *settings,
                                   remat_model **model);
/* A folder has two more settings: "model.length=N", how many tokens a sample has, and "model.pack=true", whether samples
 * share a row. */
remat_status remat_model_load_with(remat_context *context, const char *path, const char *const *settings,
                                   remat_model **model);

/* Makes an empty model. REMAT_NO_MEMORY. Destroy the trainers of a model before the model. */
remat_status remat_model_create(remat_context *context, remat_model **model);
void remat_model_destroy(remat_model *model);

/* Appends a layer. Each property is "key=value". The property `name` must be unique; without it the name is made from
 * the type. This call and the following ones copy their texts. REMAT_INVALID names the layer and the property. */
remat_status remat_model_add_layer(remat_model *model, const char *type, const char *const *properties);

/* Declares a block: layers that are recomputed together in the backward pass. The input of the first layer and the
 * output of the last one are kept. REMAT_INVALID: a layer is unknown or in another block, the layers are not
 * consecutive, or the model is compiled. */
remat_status remat_model_add_block(remat_model *model, const char *const *layers);

/* Sets what the sections [Model], [Optimizer] and [Dataset] of the file say. REMAT_INVALID names the property. */
remat_status remat_model_set(remat_model *model, const char *const *properties);
remat_status remat_model_set_optimizer(remat_model *model, const char *type, const char *const *properties);
remat_status remat_model_set_dataset(remat_model *model, const char *type, const char *const *properties);

/* Whether `path` can be written without losing data of the model. REMAT_IO: it is a file that [Dataset] names, or one in
 * a folder of images that it names, or a file of the folder that the model came from: its weights, config.json, its
 * tokenizer. What is no file yet can be written. REMAT_NO_MEMORY. */
remat_status remat_model_check_output(const remat_model *model, const char *path);

/* Connects the layers and finds all shapes. After that, no layers or blocks can be added. REMAT_INVALID,
 * REMAT_NO_MEMORY. */
remat_status remat_model_compile(remat_model *model);

/* ---- looking at a compiled model ---- */

uint64_t remat_model_batch(const remat_model *model);           /* the batch size */
uint64_t remat_model_budget(const remat_model *model);          /* in bytes; REMAT_NO_BUDGET (remat/plan.h) if none */
uint64_t remat_model_parameter_count(const remat_model *model); /* how many values are trained */

/* A layer of a compiled model. A composite layer, such as attention, is listed as its parts. Texts belong to the
 * model. */
typedef struct remat_model_layer {
    const char *name, *type;
    uint64_t output_shape[3]; /* channels, height and width of one sample */
    uint64_t parameters;      /* values; those shared with another layer are counted there */
    uint64_t output_bytes;    /* for the batch; 0 if the output is a view of the input */
    uint64_t saved_bytes;     /* kept for the backward pass besides inputs and output */
    uint64_t workspace_bytes; /* the most that one of its steps needs */
    const char *block;        /* "" if none */
    /* When each step of the layer runs: its position in the order of a training iteration. REMAT_NOWHERE if the layer
     * has no such step. */
    uint64_t forward;
    uint64_t recompute;
    uint64_t weight_gradient; /* computes the gradient of the weights */
    uint64_t input_gradient;  /* computes the gradient of the input */
    uint64_t apply;           /* the optimizer updates the weights */
} remat_model_layer;

/* How many layers there are, and the layer at a position from 0. REMAT_INVALID past the end. */
size_t remat_model_layer_count(const remat_model *model);
remat_status remat_model_get_layer_sized(const remat_model *model, size_t position, remat_model_layer *layer,
                                         size_t layer_size);
static inline remat_status remat_model_get_layer(const remat_model *model, size_t position, remat_model_layer *layer)
{
    return remat_model_get_layer_sized(model, position, layer, sizeof *layer);
}

/* What one sample consists of: an input for each input layer, and the labels. A remat_sample_fn (remat/train.h) writes
 * them. The name belongs to the model. */
typedef struct remat_sample_field {
    const char *layer; /* the input layer; of the labels, the layer that reads them */
    remat_dtype dtype; /* REMAT_FP32, or REMAT_INT32 for tokens and classes */
    uint64_t count;    /* how many values */
    uint64_t shape[3]; /* of an input: channels, height and width; of the labels 0 */
    uint64_t bound;    /* whole numbers are below it; negative ones are labels to ignore. 0: no limit */
} remat_sample_field;

/* How many inputs a sample has, and the input at a position from 0. REMAT_INVALID past the end. */
size_t remat_model_input_count(const remat_model *model);
remat_status remat_model_get_input_sized(const remat_model *model, size_t position, remat_sample_field *input,
                                         size_t input_size);
static inline remat_status remat_model_get_input(const remat_model *model, size_t position, remat_sample_field *input)
{
    return remat_model_get_input_sized(model, position, input, sizeof *input);
}

/* The labels. REMAT_INVALID: the model has no loss. */
remat_status remat_model_get_labels_sized(const remat_model *model, remat_sample_field *labels, size_t labels_size);
static inline remat_status remat_model_get_labels(const remat_model *model, remat_sample_field *labels)
{
    return remat_model_get_labels_sized(model, labels, sizeof *labels);
}

/* Writes layers, shapes, parameters and bytes, for people or as JSON. REMAT_INVALID: the model is not compiled.
 * REMAT_IO. */
remat_status remat_model_write_summary(const remat_model *model, FILE *stream, bool json);

/* Writes when the five steps of every layer run, and the live ranges of all tensors that follow from this. The steps
 * are called forward, recompute, gradient (of the weights), derivative (the gradient of the input) and apply. The same
 * errors. */
remat_status remat_model_write_order(const remat_model *model, FILE *stream, bool json);

/* Writes a list of the layer types, for people or as JSON (docs/formats.md). With a `type`, writes only this type, with
 * its inputs and properties. The JSON always has the inputs and properties. REMAT_INVALID: the type does not exist.
 * REMAT_IO. */
remat_status remat_layer_types_write(remat_context *context, const char *type, FILE *stream, bool json);

#ifdef __cplusplus
}
#endif
#endif
