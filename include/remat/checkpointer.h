/* Remat: a simple checkpointer for your own forward function.
 *
 * It runs a list of layers through a callback, keeps the activations (outputs) of some of them, and computes any other
 * again when it is asked for, from the nearest one kept before it:
 *
 *     remat_checkpointer_options options;
 *     remat_checkpointer_options_init(&options);
 *     options.keep_every_n = 3;
 *     remat_checkpointer *cp;
 *     remat_checkpointer_create(ctx, &options, &cp);
 *     remat_checkpointer_forward(cp, layers, 6, input, 3, my_layer, my_data, output);
 *     ...
 *     remat_checkpointer_recompute(cp, 4, layers, 6, my_layer, my_data, activation);
 *
 * For the whole backward pass, with a plan and a proven peak, see remat/tape.h. examples/multiply_add.c is complete.
 *
 * Threads: a checkpointer belongs to one thread at a time, as its context does. Everything that can fail returns a
 * status, and the context says which layer it was (by the caller's number) and what would be right. */
#ifndef REMAT_CHECKPOINTER_H
#define REMAT_CHECKPOINTER_H

#include <remat/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_checkpointer_options {
    size_t struct_size;
    uint64_t keep_every_n;     /* keep the layers whose number is a multiple of this; 0: none. Default 4 */
    uint64_t max_kept;         /* how many activations may be kept at once. Default 64 */
    remat_precision precision; /* in which they are kept. Default REMAT_FP32 */
    remat_overflow overflow;   /* for fp16 and bf16. Default REMAT_OVERFLOW_ERROR */
} remat_checkpointer_options;
void remat_checkpointer_options_init(remat_checkpointer_options *options);

typedef struct remat_checkpointer remat_checkpointer;

/* An empty checkpointer. `options` NULL: the defaults. REMAT_INVALID, REMAT_NO_MEMORY. The caller destroys it, before
 * the context; NULL is fine there. */
remat_status remat_checkpointer_create(remat_context *context, const remat_checkpointer_options *options,
                                       remat_checkpointer **checkpointer);
void remat_checkpointer_destroy(remat_checkpointer *checkpointer);

/* ---- running layers ---- */

/* A layer: a number of the caller's own (any, but each only once in a list) and how many floats it puts out. */
typedef struct remat_checkpointer_layer {
    uint64_t number;
    size_t count;
} remat_checkpointer_layer;

/* Computes one layer. The buffers are the library's, do not overlap, and are good during the call only. Given the same
 * input it must put out the same. It must not change the checkpointer. Anything but REMAT_OK ends the run and comes
 * back unchanged from it, also a number that is no remat_status. */
typedef remat_status (*remat_checkpointer_fn)(void *user, uint64_t layer, const float *input, size_t input_count,
                                              float *output, size_t output_count);

/* Drops what was kept before, runs the layers in the order of the list and keeps the input and the activations that the
 * rule selects while there is room for them (see remat_checkpointer_missed). `output` gets the last layer's floats;
 * with no layers, the input. Besides what is kept, two activations are in memory at most. The arrays remain the
 * caller's; `output` must not overlap `input`. After a failure nothing is kept. REMAT_INVALID where a layer stands
 * twice in the list, REMAT_CHECK_FAILED on overflow by that policy, REMAT_NO_MEMORY. */
remat_status remat_checkpointer_forward(remat_checkpointer *checkpointer, const remat_checkpointer_layer *layers,
                                        size_t layer_count, const float *input, size_t input_count,
                                        remat_checkpointer_fn forward, void *user, float *output);

/* The activation of layer `number` of the same list. A kept one is handed out as it is. Otherwise the layers after the
 * nearest kept one before it in the list, or after the input, run again; what is kept does not change. With fp32 the
 * result is the same to the bit; with 16 bits it starts from rounded numbers. REMAT_INVALID where the layer is not in
 * the list, where there is nothing to start from, or where a kept activation does not have the length that the list
 * says. */
remat_status remat_checkpointer_recompute(const remat_checkpointer *checkpointer, uint64_t number,
                                          const remat_checkpointer_layer *layers, size_t layer_count,
                                          remat_checkpointer_fn forward, void *user, float *output);

/* ---- single activations ---- */

/* Keeps a copy of `activation`, whatever the rule says. A layer that is kept already is replaced. REMAT_INFEASIBLE
 * where max_kept others are kept, REMAT_CHECK_FAILED on overflow by that policy, REMAT_NO_MEMORY; on failure everything
 * is as it was, the count of overflows apart. */
remat_status remat_checkpointer_save(remat_checkpointer *checkpointer, uint64_t number, const float *activation,
                                     size_t count);

/* Copies a kept activation to `activation`. REMAT_INVALID where the layer is not kept or has another length. */
remat_status remat_checkpointer_get(const remat_checkpointer *checkpointer, uint64_t number, float *activation,
                                    size_t count);

/* Whether it is kept right now; *count, where not NULL, gets its length. */
bool remat_checkpointer_has(const remat_checkpointer *checkpointer, uint64_t number, size_t *count);

/* Whether the rule selects this layer: a multiple of keep_every_n. */
bool remat_checkpointer_keeps(const remat_checkpointer *checkpointer, uint64_t number);

/* Drops everything, the input too, and sets all figures to 0. */
void remat_checkpointer_clear(remat_checkpointer *checkpointer);

/* ---- figures ---- */

/* Activations kept, without the input; their bytes as they are stored; and the bytes of the input. */
uint64_t remat_checkpointer_count(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_kept_bytes(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_input_bytes(const remat_checkpointer *checkpointer);

/* Bytes that were not kept: of the forward's other activations, and of each 16-bit one the half. After a forward,
 * kept_bytes + avoided_bytes is what keeping every activation as it is would have taken. */
uint64_t remat_checkpointer_avoided_bytes(const remat_checkpointer *checkpointer);

/* How many activations the last forward should have kept but could not, because max_kept were kept. */
uint64_t remat_checkpointer_missed(const remat_checkpointer *checkpointer);

/* Overflows, and activations kept in full because of them, since the last clear. */
void remat_checkpointer_count_overflows(const remat_checkpointer *checkpointer, remat_store_counters *counters);

/* As given to create, with the defaults filled in. */
const remat_checkpointer_options *remat_checkpointer_get_options(const remat_checkpointer *checkpointer);

#ifdef __cplusplus
}
#endif
#endif
