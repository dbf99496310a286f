/* Remat: what the layers of a chain cost.
 *
 * A profile is a chain of layers with their bytes and costs, in integers only. It is built in memory:
 *
 *     remat_profile *profile;
 *     remat_profile_create(ctx, &profile);
 *     remat_profile_add(profile, REMAT_ATTENTION, 1024, 2000000);
 *     remat_profile_add(profile, REMAT_FFN, 512, 1000000);
 *
 * or read from a file (JSON or CSV, told apart by content; docs/formats.md). All bytes and costs are below 2^63, and
 * so is the sum of everything a chain could ever hold at once: adding up live bytes cannot overflow. */
#ifndef REMAT_PROFILE_H
#define REMAT_PROFILE_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What kind of work a layer does; strategies select by it. */
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

/* One way of saving a layer for its backward. Every layer has the mode `keep`; others are optional. */
typedef struct remat_mode {
    const char *name;
    uint64_t activation_bytes;
    uint64_t forward_cost;  /* of a forward that saves in this mode */
    uint64_t backward_cost; /* of the backward that uses it */
    uint64_t forward_workspace_bytes;
    uint64_t backward_workspace_bytes;
    bool holds_output; /* the layer's output can be read from the saved state */
    bool lossless;     /* false: used only where the caller allows it */
} remat_mode;

/* A layer as the library holds it: every default filled in. Mode 0 is `keep`; its forward cost and workspace are also
 * those of a forward that saves nothing. */
typedef struct remat_layer {
    const char *name;
    uint64_t index; /* the caller's own number, unique in the chain */
    remat_layer_type type;
    uint32_t mode_count;
    const remat_mode *modes;
    uint64_t recompute_flops;
    uint64_t output_bytes;
} remat_layer;

/* recompute_flops / activation_bytes of `keep`; 0 where there are no bytes. */
double remat_layer_cost_ratio(const remat_layer *layer);

typedef struct remat_profile remat_profile;

/* An empty chain. REMAT_NO_MEMORY. The caller destroys it, before the context. */
remat_status remat_profile_create(remat_context *context, remat_profile **profile);
void remat_profile_destroy(remat_profile *profile);

/* Appends a layer whose index is its position and whose other figures are the defaults of docs/formats.md. */
remat_status remat_profile_add(remat_profile *profile, remat_layer_type type, uint64_t activation_bytes,
                               uint64_t recompute_flops);

/* Appends a layer with everything said. Call remat_layer_options_init first; what stays REMAT_DEFAULT (or NULL) gets
 * the default. Names and modes are copied. REMAT_INVALID names the field; a failed call leaves the profile as it was. */
#define REMAT_DEFAULT UINT64_MAX
typedef struct remat_mode_options {
    size_t struct_size;
    const char *name;
    uint64_t activation_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    bool holds_output, lossless;
} remat_mode_options;
void remat_mode_options_init(remat_mode_options *options);

typedef struct remat_layer_options {
    size_t struct_size;
    uint64_t index; /* default: the position */
    const char *name;
    remat_layer_type type;
    uint64_t activation_bytes, recompute_flops;
    uint64_t output_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    const remat_mode_options *modes; /* besides `keep` */
    size_t mode_count;
} remat_layer_options;
void remat_layer_options_init(remat_layer_options *options);
remat_status remat_profile_add_layer(remat_profile *profile, const remat_layer_options *options);

/* Figures of the chain as a whole. Strings are copied; input_gradient_bytes follows input_bytes until it is set. */
remat_status remat_profile_set_name(remat_profile *profile, const char *name);
remat_status remat_profile_set_cost_unit(remat_profile *profile, const char *unit);
remat_status remat_profile_set_input_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_input_gradient_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_loss_workspace_bytes(remat_profile *profile, uint64_t bytes);

/* Reading back. Pointers belong to the profile and hold until the next change of it. */
const char *remat_profile_name(const remat_profile *profile);      /* "" where not set */
const char *remat_profile_cost_unit(const remat_profile *profile); /* "" where not set */
uint64_t remat_profile_input_bytes(const remat_profile *profile);
uint64_t remat_profile_input_gradient_bytes(const remat_profile *profile);
uint64_t remat_profile_loss_workspace_bytes(const remat_profile *profile);
size_t remat_profile_layer_count(const remat_profile *profile);
const remat_layer *remat_profile_layer(const remat_profile *profile, size_t position); /* NULL past the end */

/* Reads a profile, JSON or CSV, from a path or an open stream (`name` stands for it in messages). REMAT_IO where the
 * file cannot be read, REMAT_BAD_INPUT with file, line or layer, and field. Unknown keys are warned about. */
remat_status remat_profile_load(remat_context *context, const char *path, remat_profile **profile);
remat_status remat_profile_read(remat_context *context, FILE *stream, const char *name, remat_profile **profile);

/* Writes JSON; reading it again gives the same profile. `save` leaves the old file in place unless all went well. */
remat_status remat_profile_write(const remat_profile *profile, FILE *stream);
remat_status remat_profile_save(const remat_profile *profile, const char *path);

#ifdef __cplusplus
}
#endif
#endif
