/* A model as it was described: layers with their options, blocks, settings. Options and texts are in the pool.
 * network.h has the flat list of layers that is built from it. */
#ifndef REMAT_MODEL_MODEL_OBJECT_H
#define REMAT_MODEL_MODEL_OBJECT_H

#include "base/ini_reader.h"
#include "model/model_names.h"
#include "model/model_order.h"
#include "model/network.h"
#include "model/tuning.h"

enum { MODEL_MOST_LAYERS = 1000000, MODEL_MOST_COPIES = 100000 };

typedef struct described_layer {
    const char *name;
    const layer_type *type;
    const void *options;       /* of the type's own struct */
    const char *const *inputs; /* NULL: the layer before */
    size_t input_count;
    uint64_t inputs_line;
    uint32_t block; /* NETWORK_NONE or a position in blocks */
    bool frozen;
    bool fp32;     /* also in a model of bf16 */
    uint64_t line; /* REMAT_NOWHERE where it came from no file */
} described_layer;

/* Layers first .. last of the description. */
typedef struct described_block {
    const char *name;
    uint32_t first, last;
    uint64_t line;
} described_block;

/* The execution order of all layers, computed at the first request. */
typedef struct model_order_cache {
    layer_order *layers; /* NULL: not computed yet */
    size_t count;
} model_order_cache;

struct remat_model {
    remat_context *context;
    text_pool pool;
    const char *file;   /* as the caller named it; NULL: built by calls */
    const char *folder; /* that it came from, in Hugging Face's layout; NULL: none */
    bool maps_frozen;   /* frozen weights are not copied from there: frozen=keep */
    const char **set;   /* the settings that changed the file, by the order of ini_set() */
    described_layer *layers;
    size_t layer_count, layer_capacity;
    model_names layer_names;
    described_block *blocks;
    size_t block_count, block_capacity;
    model_names block_names;
    model_settings settings;
    optimizer_settings optimizer;
    dataset_settings dataset;
    model_tuning tuning;
    backend *processor;     /* gives the workspaces of operations if no device was chosen */
    remat_network *network; /* of a compiled model, for training where it has a loss; NULL before */
    model_order_cache *order;
};

/* ---- describing (model.c, model_blocks.c, settings.c): what the public calls and the reader share ---- */

/* `name` NULL: one of the entries has the name, or it is made from the type. */
remat_status model_add_layer(remat_model *model, const char *type, const char *name, const ini_entry *entries,
                             size_t count, uint64_t line);

/* Finds a layer type by its name (layer_help.c). The message of REMAT_INVALID suggests the nearest name or lists all
 * types. */
remat_status model_find_type(remat_context *context, const char *name, const layer_type **type);

/* Adds a block of these layers, which must exist and be consecutive. `name` NULL: a name is generated. */
remat_status model_add_block(remat_model *model, const char *name, const char *const *layers, size_t count,
                             uint64_t line);
/* Adds a block of all layers from `first` to `last`. */
remat_status model_add_range(remat_model *model, const char *name, const char *first, const char *last, uint64_t line);
/* Puts a layer that is about to be added into the block that its property `block` names. */
remat_status model_join_block(remat_model *model, described_layer *layer, const char *name, uint64_t line);

remat_status model_set(remat_model *model, const ini_entry *entries, size_t count);
remat_status model_set_optimizer(remat_model *model, const char *type, const ini_entry *entries, size_t count,
                                 uint64_t line);
remat_status model_set_dataset(remat_model *model, const char *type, const ini_entry *entries, size_t count,
                               uint64_t line);
/* Sets all settings to their defaults. */
remat_status model_settings_begin(remat_model *model);

/* Reads a model file. `folder`: the folder in Hugging Face's layout that the text was made from, or NULL. Nobody has seen that text: so
 * messages name no line of it, and parameters have the names that they have in the folder. */
remat_status model_read_text(remat_context *context, FILE *stream, const char *name, const char *folder,
                             const char *const *settings, remat_model **model);

/* Puts file, line and layer in front of the failure on the context. Returns its status, with REMAT_BAD_INPUT in place of
 * REMAT_INVALID where a line of the file or the folder is to blame; `layer` may be NULL. */
remat_status model_blame(const remat_model *model, const char *layer, uint64_t line, remat_status status);

/* Splits a list "a, b, c"; the items are in the pool. */
remat_status model_split_list(text_pool *pool, const char *text, const char *const **items, size_t *count);

#endif
