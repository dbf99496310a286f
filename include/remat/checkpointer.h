/* Remat: a simple checkpointer for your own forward function.
 *
 * The checkpointer runs a list of layers by calling your function. It keeps the activations (outputs) of some layers.
 * When you ask for another activation, it recomputes it from the nearest kept one before it:
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
 * examples/multiply_add.c is a complete program. For a whole backward pass that follows a plan, see remat/tape.h.
 *
 * Threads: a checkpointer may be used by one thread at a time. Errors: the error on the context has the number of the
 * layer. */
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
    remat_precision precision; /* how they are stored. Default REMAT_FP32 */
    remat_overflow overflow;   /* for fp16 and bf16. Default REMAT_OVERFLOW_ERROR */
} remat_checkpointer_options;
void remat_checkpointer_options_init_sized(remat_checkpointer_options *options, size_t size);
static inline void remat_checkpointer_options_init(remat_checkpointer_options *options)
{
    remat_checkpointer_options_init_sized(options, sizeof *options);
}

typedef struct remat_checkpointer remat_checkpointer;

/* Makes an empty checkpointer. `options` NULL: the defaults. REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_checkpointer_create(remat_context *context, const remat_checkpointer_options *options,
                                       remat_checkpointer **checkpointer);
void remat_checkpointer_destroy(remat_checkpointer *checkpointer);

/* ---- running layers ---- */

/* A layer. This struct never changes. */
typedef struct remat_checkpointer_layer {
    uint64_t number; /* the caller's own, unique in the list */
    size_t count;    /* how many floats the output has */
} remat_checkpointer_layer;

/* Your function: computes one layer. The buffers belong to the library, do not overlap, and are valid during the call
 * only. The same input must always give the same output. The function must not change the checkpointer. Any status but
 * REMAT_OK ends the run, and the run returns it unchanged, even if it is not a remat_status. */
typedef remat_status (*remat_checkpointer_fn)(void *user, uint64_t layer, const float *input, size_t input_count,
                                              float *output, size_t output_count);

/* Runs the layers in the order of the list, after dropping everything that was kept before. It keeps the input, and
 * the activations that keep_every_n selects as long as fewer than max_kept are kept. `output` receives the floats of
 * the last layer, or the input if there are no layers. `output` must not overlap `input`; both remain the caller's. At
 * most two activations are in memory besides the kept ones.
 *   REMAT_INVALID       a number is twice in the list;
 *   REMAT_CHECK_FAILED  a number is too large for 16 bits (REMAT_OVERFLOW_ERROR);
 *   REMAT_NO_MEMORY, or what `forward` returned. After any failure nothing is kept. */
remat_status remat_checkpointer_forward(remat_checkpointer *checkpointer, const remat_checkpointer_layer *layers,
                                        size_t layer_count, const float *input, size_t input_count,
                                        remat_checkpointer_fn forward, void *user, float *output);

/* Gives the activation of layer `number`. `layers` must be the list of the last forward. A kept activation is copied.
 * Otherwise it is recomputed from the nearest kept activation before it, or from the input. The call does not change
 * what is kept. With fp32 the result has the same bits as in the forward; with 16 bits it is computed from rounded
 * numbers. REMAT_INVALID: the layer is not in the list, nothing is kept to start from, or a kept activation does not
 * have the length that the list says. REMAT_NO_MEMORY, or what `forward` returned. */
remat_status remat_checkpointer_recompute(const remat_checkpointer *checkpointer, uint64_t number,
                                          const remat_checkpointer_layer *layers, size_t layer_count,
                                          remat_checkpointer_fn forward, void *user, float *output);

/* ---- single activations ---- */

/* Keeps a copy of an activation, whatever keep_every_n says. It replaces the activation of the same number.
 * REMAT_INFEASIBLE: max_kept others are kept already. REMAT_CHECK_FAILED: a number is too large for 16 bits
 * (REMAT_OVERFLOW_ERROR). REMAT_NO_MEMORY. After a failure everything is as before, except the count of overflows. */
remat_status remat_checkpointer_save(remat_checkpointer *checkpointer, uint64_t number, const float *activation,
                                     size_t count);

/* Copies a kept activation to `activation`. REMAT_INVALID: the layer is not kept, or its length is not `count`. */
remat_status remat_checkpointer_get(const remat_checkpointer *checkpointer, uint64_t number, float *activation,
                                    size_t count);

/* Whether an activation is kept now. *count, if not NULL, receives its length. */
bool remat_checkpointer_has(const remat_checkpointer *checkpointer, uint64_t number, size_t *count);

/* Whether keep_every_n selects this layer. */
bool remat_checkpointer_keeps(const remat_checkpointer *checkpointer, uint64_t number);

/* Drops everything, the input too, and sets all figures to 0. */
void remat_checkpointer_clear(remat_checkpointer *checkpointer);

/* ---- figures ---- */

/* How many activations are kept, without the input, and how many bytes they take as they are stored. */
uint64_t remat_checkpointer_count(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_kept_bytes(const remat_checkpointer *checkpointer);

/* How many bytes the kept input takes. */
uint64_t remat_checkpointer_input_bytes(const remat_checkpointer *checkpointer);

/* How many bytes were not kept: activations that were dropped, and half of each activation that is stored in 16 bits.
 * After a forward, kept_bytes + avoided_bytes is what keeping every activation in fp32 would take. */
uint64_t remat_checkpointer_avoided_bytes(const remat_checkpointer *checkpointer);

/* How many activations keep_every_n selected but the last forward did not keep, because max_kept were kept already. */
uint64_t remat_checkpointer_missed(const remat_checkpointer *checkpointer);

/* The numbers that were too large for 16 bits, and the activations kept in full because of them, since the last
 * clear. */
void remat_checkpointer_get_counters_sized(const remat_checkpointer *checkpointer, remat_store_counters *counters,
                                           size_t counters_size);
static inline void remat_checkpointer_get_counters(const remat_checkpointer *checkpointer,
                                                   remat_store_counters *counters)
{
    remat_checkpointer_get_counters_sized(checkpointer, counters, sizeof *counters);
}

/* The options in use. They belong to the checkpointer. */
const remat_checkpointer_options *remat_checkpointer_get_options(const remat_checkpointer *checkpointer);

#ifdef __cplusplus
}
#endif
#endif
