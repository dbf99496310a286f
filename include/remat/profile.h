/* Remat: what the layers of a chain cost.
 *
 * A profile describes a chain of layers: how many bytes and how much work each takes, in integers. Build it by calls:
 *
 *     remat_profile *profile;
 *     remat_profile_create(ctx, &profile);
 *     remat_profile_add(profile, REMAT_ATTENTION, 1024, 2000000);
 *     remat_profile_add(profile, REMAT_FFN, 512, 1000000);
 *
 * or read it from a file, JSON or CSV (docs/formats.md). What the numbers mean is in docs/memory-model.md.
 *
 * Every number of bytes and every cost is below 2^63, and so is the sum of all bytes of the chain. */
#ifndef REMAT_PROFILE_H
#define REMAT_PROFILE_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_profile remat_profile;

/* Makes an empty profile. REMAT_NO_MEMORY. */
remat_status remat_profile_create(remat_context *context, remat_profile **profile);
void remat_profile_destroy(remat_profile *profile);

/* What kind of work a layer does. Some strategies choose layers by it. */
#define REMAT_LAYER_TYPE_LIST(X)    \
    X(REMAT_ATTENTION, "attention") \
    X(REMAT_FFN, "ffn")             \
    X(REMAT_EMBEDDING, "embedding") \
    X(REMAT_NORM, "norm")           \
    X(REMAT_OTHER, "other")
typedef enum remat_layer_type {
#define X(name, text) name,
    REMAT_LAYER_TYPE_LIST(X)
#undef X
} remat_layer_type;
const char *remat_layer_type_name(remat_layer_type type);

/* Appends a layer. Its index is its position in the chain. All other figures get their defaults (docs/formats.md).
 * REMAT_INVALID: the error on the context names the field, and the profile is unchanged. REMAT_NO_MEMORY. */
remat_status remat_profile_add(remat_profile *profile, remat_layer_type type, uint64_t activation_bytes,
                               uint64_t recompute_flops);

/* ---- reading and writing files ---- */

/* Reads a profile from a file or an open stream. `name` stands for the stream in messages. The caller destroys the
 * profile. REMAT_IO: the file cannot be read. REMAT_BAD_INPUT: the error on the context names the file, the line or
 * layer, and the field. Unknown keys give warnings. */
remat_status remat_profile_load(remat_context *context, const char *path, remat_profile **profile);
remat_status remat_profile_read(remat_context *context, FILE *stream, const char *name, remat_profile **profile);

/* Writes a profile as JSON. Reading it again gives the same profile. `save` replaces the file only when everything was
 * written. REMAT_IO. */
remat_status remat_profile_write(const remat_profile *profile, FILE *stream);
remat_status remat_profile_save(const remat_profile *profile, const char *path);

/* ---- layers with all their figures ---- */

/* A member with this value, or a NULL string, gets the default of docs/formats.md. */
#define REMAT_DEFAULT UINT64_MAX

/* One more way to save a layer's state for its backward, besides keeping it as it is. */
typedef struct remat_mode_options {
    size_t struct_size;
    const char *name; /* required; `keep` and `recompute` are taken */
    uint64_t activation_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    bool holds_output; /* the layer's output can be read from the saved state. Default true */
    bool lossless;     /* false: the planner uses this mode only if lossy modes are allowed. Default true */
} remat_mode_options;
void remat_mode_options_init_sized(remat_mode_options *options, size_t size);
static inline void remat_mode_options_init(remat_mode_options *options)
{
    remat_mode_options_init_sized(options, sizeof *options);
}

typedef struct remat_layer_options {
    size_t struct_size;
    uint64_t index; /* the caller's own number, unique in the chain. Default: the position */
    const char *name;
    remat_layer_type type;
    uint64_t activation_bytes, recompute_flops;
    uint64_t output_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    const remat_mode_options *modes; /* an array, every element initialised with remat_mode_options_init */
    size_t mode_count;
} remat_layer_options;
void remat_layer_options_init_sized(remat_layer_options *options, size_t size);
static inline void remat_layer_options_init(remat_layer_options *options)
{
    remat_layer_options_init_sized(options, sizeof *options);
}

/* Appends a layer. Strings and modes are copied. REMAT_INVALID: the error on the context names the field, and the
 * profile is unchanged. REMAT_NO_MEMORY. */
remat_status remat_profile_add_layer(remat_profile *profile, const remat_layer_options *options);

/* Sets the properties of the whole chain. Strings are copied. input_gradient_bytes equals input_bytes until it is set.
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_profile_set_name(remat_profile *profile, const char *name);
remat_status remat_profile_set_cost_unit(remat_profile *profile, const char *unit);
remat_status remat_profile_set_input_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_input_gradient_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_loss_workspace_bytes(remat_profile *profile, uint64_t bytes);

/* ---- looking at a profile ---- */

/* All pointers from here on belong to the profile and are valid until it is changed or destroyed. */
const char *remat_profile_name(const remat_profile *profile);      /* "" if it was not set */
const char *remat_profile_cost_unit(const remat_profile *profile); /* "" if it was not set */
uint64_t remat_profile_input_bytes(const remat_profile *profile);
uint64_t remat_profile_input_gradient_bytes(const remat_profile *profile);
uint64_t remat_profile_loss_workspace_bytes(const remat_profile *profile);
size_t remat_profile_layer_count(const remat_profile *profile);

/* One way to save a layer's state for its backward. */
typedef struct remat_mode {
    const char *name;
    uint64_t activation_bytes; /* of the saved state */
    uint64_t forward_cost;     /* of a forward that saves in this mode */
    uint64_t backward_cost;    /* of a backward that uses a state saved in this mode */
    uint64_t forward_workspace_bytes;
    uint64_t backward_workspace_bytes;
    bool holds_output; /* the layer's output can be read from the saved state */
    bool lossless;
} remat_mode;

/* A layer with all defaults filled in. Mode 0 is `keep`: the layer's own figures. A forward that saves nothing has the
 * forward cost and the workspace of mode 0. */
typedef struct remat_layer {
    const char *name;
    uint64_t index;
    remat_layer_type type;
    uint32_t mode_count;
    const remat_mode *modes; /* read them with remat_layer_mode: in a later release an element may be larger */
    uint64_t recompute_flops;
    uint64_t output_bytes;
} remat_layer;

/* The layer at a position from 0, and one of its modes. NULL past the end. */
const remat_layer *remat_profile_layer(const remat_profile *profile, size_t position);
const remat_mode *remat_layer_mode(const remat_layer *layer, size_t mode);

/* recompute_flops / activation_bytes of the mode `keep`; 0 if there are no bytes. */
double remat_layer_cost_ratio(const remat_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
