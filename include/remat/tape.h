/* Remat: your own forward and backward functions in a memory budget.
 *
 * The tape is for code that has its own mathematics: the time steps of a simulation, a recurrent network, a
 * hand-written model, an adjoint solver. You describe the bytes and costs of each layer (a profile) and give three
 * functions. The tape makes a plan, places all buffers in one arena, calls your functions in the right order with the
 * right buffers, and gives you the gradient of the input:
 *
 *     remat_tape_callbacks callbacks = {my_forward, my_backward, my_loss, my_data};
 *     remat_tape_options options;
 *     remat_tape_options_init(&options);
 *     options.budget_bytes = 64 << 20;
 *     remat_tape *tape;
 *     remat_tape_create(ctx, profile, &callbacks, &options, &tape);
 *     remat_tape_run(tape, input, input_gradient);
 *     remat_tape_destroy(tape);
 *
 * Whatever the plan recomputes or stores on disk, the results have the same bits as if everything were kept. Only
 * storing in 16 bits changes them.
 *
 * Memory: all data of a run is in one allocation of remat_tape_arena_bytes() bytes, aligned to 64. The first run makes
 * it; remat_tape_destroy releases it. A run allocates nothing else, with one exception: activations that
 * REMAT_OVERFLOW_KEEP_FULL stores in full. Besides the arena a tape has its bookkeeping (bookkeeping_bytes): the
 * plan's figures (8 bytes a layer), a table of live tensors (about 80 bytes each), offsets (8 bytes for each live
 * range; none if all layers are equal), a copy of the profile if sizes had to be rounded, and the notes of the verify
 * mode.
 *
 * Threads: a tape may be used by one thread at a time. Your functions run on the thread that called the tape. */
#ifndef REMAT_TAPE_H
#define REMAT_TAPE_H

#include <remat/plan.h>
#include <remat/random.h>
#include <remat/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- your functions ---- */

typedef enum remat_tape_phase {
    REMAT_PHASE_FORWARD,   /* the first forward of a layer in this run */
    REMAT_PHASE_RECOMPUTE, /* every later forward of it */
    REMAT_PHASE_LOSS,
    REMAT_PHASE_BACKWARD
} remat_tape_phase;
const char *remat_tape_phase_name(remat_tape_phase phase); /* "forward", "recompute", "loss", "backward" */

/* What your functions receive. All buffers belong to the tape, are aligned to 64 bytes, do not overlap, and are valid
 * during the call only. A buffer that does not apply is NULL. Sizes are those of the profile. A buffer of 0 bytes is
 * not NULL but must not be read or written.
 *
 *                input         saved                  output    output_gradient   input_gradient
 *     forward    read          write (NULL: no save)  write     -                 -
 *     loss       last output   -                      -         -                 write
 *     backward   read          read                   -         read              write
 *
 * A forward with `saved` writes its whole state there. The first output_bytes of the state are the layer's output, and
 * `output` points to them. In a mode that does not hold the output, `output` is a buffer of its own. A backward may
 * overwrite `saved`: it is dropped afterwards. Gradients are written, not added to. A forward must give the same
 * output and state for the same input every time: draw random numbers from `random`. */
typedef struct remat_tape_call {
    uint32_t layer; /* position from 0; for the loss, the number of layers */
    uint16_t mode;  /* in which the state is saved: REMAT_KEEP, another mode of the profile, or REMAT_NO_SAVE */
    remat_tape_phase phase;
    const void *input;
    void *saved;
    void *output;
    const void *output_gradient;
    void *input_gradient;
    void *workspace;     /* forward_, backward_ or loss_workspace_bytes; NULL if that is 0 */
    remat_random random; /* of this layer in this run: the same for every forward and for the backward */
} remat_tape_call;

/* Any result but 0 ends the run. remat_tape_run returns it unchanged, and the error on the context names the layer and
 * the phase. The tape can be run again. A function must not call its own tape: that is REMAT_INVALID. */
typedef int (*remat_tape_fn)(void *user, const remat_tape_call *call);

typedef struct remat_tape_callbacks {
    remat_tape_fn forward, backward, loss; /* all three are required */
    void *user;                            /* passed to all three */
} remat_tape_callbacks;

/* Called after each of your functions: `done` of `total` calls; `total` is 0 if it is not known. Any result but 0 ends
 * the run, as with your functions. */
typedef int (*remat_tape_progress_fn)(void *user, uint64_t done, uint64_t total, remat_tape_phase phase,
                                      uint32_t layer);

/* ---- options ---- */

/* Where the tape stores activations until the backward pass needs them. */
typedef enum remat_tape_store {
    REMAT_TAPE_MEMORY, /* in the arena, as they are */
    REMAT_TAPE_FP16,   /* in the arena, in 16 bits: half the bytes, rounded; floats only */
    REMAT_TAPE_BF16,   /* likewise */
    REMAT_TAPE_DISK    /* in a temporary file, written and read in the background, checked by hashes */
} remat_tape_store;

/* Checks that recomputing gives what the first forward gave. */
typedef enum remat_tape_verify {
    REMAT_VERIFY_OFF,
    REMAT_VERIFY_HASHES, /* by hashes of 4 KiB chunks: 0.2 % of the bytes; says which chunk differs */
    REMAT_VERIFY_COPIES  /* by copies of everything; says which element differs, and both values */
} remat_tape_verify;

typedef struct remat_tape_options {
    size_t struct_size;

    /* The plan. Give `plan` or `plan_path`. Without them the tape makes a plan with `strategy` and `budget_bytes`. */
    const char *strategy;   /* as in remat_plan_options */
    uint64_t budget_bytes;  /* a limit for arena_bytes, with any plan. REMAT_NO_BUDGET (the default): no limit */
    uint64_t *least_bytes;  /* if not NULL, receives needed_bytes of remat_error when the budget is too small */
    bool allow_lossy;       /* the planner may use lossy modes of the profile. A 16-bit store implies it */
    const remat_plan *plan; /* a plan for the profile. It must outlive the tape */
    const char *plan_path;  /* a plan file for the profile; with store_planned, for what remat_tape_profile gives */

    /* The store. Without store_planned the store takes every activation that is not needed for at least `wait_steps`
     * calls, and brings it back before its next use. With store_planned every layer has one more mode, named fp16, bf16
     * or disk, and the plan decides which layers use it. In this mode a forward runs as if kept; then its state goes to
     * the store, and its output stays in the arena. The input of the chain is never rounded. */
    remat_tape_store store;
    bool store_planned;
    remat_element element;   /* of input, states and outputs. Default REMAT_FLOATS. REMAT_BYTES excludes 16 bits */
    remat_overflow overflow; /* in 16 bits. REMAT_OVERFLOW_KEEP_FULL allocates memory outside the arena */
    const char *directory;   /* of the disk store; it must exist. Default "." */
    uint32_t write_steps;    /* how many calls a write to disk may take; until then the arena holds it. Default 4 */
    uint32_t read_steps;     /* how many calls before its use a state is read from disk. Default 4 */
    uint32_t wait_steps; /* 0 (the default): the smallest value: 1 in 16 bits, write_steps + read_steps + 2 on disk */

    remat_tape_verify verify; /* not with a 16-bit store, where recomputing gives other bits */
    uint64_t seed;            /* of the random numbers */
    remat_tape_progress_fn progress;
    void *progress_user;
} remat_tape_options;
void remat_tape_options_init_sized(remat_tape_options *options, size_t size);
static inline void remat_tape_options_init(remat_tape_options *options)
{
    remat_tape_options_init_sized(options, sizeof *options);
}

/* ---- tapes ---- */

typedef struct remat_tape remat_tape;

/* Makes a tape: chooses a plan and places all buffers. Sizes of the profile are rounded up to 64 bytes. The profile
 * must outlive the tape and must not change; callbacks and options are copied. `options` NULL: the defaults, which
 * keep everything. On failure *tape is NULL:
 *   REMAT_INFEASIBLE  the budget is too small; remat_error on the context has the bytes that would be enough;
 *   REMAT_INVALID     an option, or a profile that does not go with the options; the context has the field;
 *   REMAT_BAD_INPUT, REMAT_CHECK_FAILED  the plan file is wrong, or the plan is not legal for this profile;
 *   REMAT_IO          the plan file or the directory of the disk store; REMAT_NO_MEMORY. */
remat_status remat_tape_create_sized(remat_context *context, const remat_profile *profile,
                                     const remat_tape_callbacks *callbacks, size_t callbacks_size,
                                     const remat_tape_options *options, remat_tape **tape);
static inline remat_status remat_tape_create(remat_context *context, const remat_profile *profile,
                                             const remat_tape_callbacks *callbacks, const remat_tape_options *options,
                                             remat_tape **tape)
{
    return remat_tape_create_sized(context, profile, callbacks, sizeof *callbacks, options, tape);
}
void remat_tape_destroy(remat_tape *tape);

/* Runs forward and backward once. `input` has input_bytes bytes and is copied; NULL if there are none.
 * `input_gradient` receives input_gradient_bytes bytes; NULL if it is not wanted. Without layers nothing is called and
 * nothing is written. After any failure the tape is as before the run. The status is what one of your functions
 * returned, or
 *   REMAT_CHECK_FAILED  the verify mode found a difference, or a number was too large for 16 bits;
 *   REMAT_IO            the disk failed, or returned other bytes than were written;
 *   REMAT_NO_MEMORY     the arena could not be allocated. */
remat_status remat_tape_run(remat_tape *tape, const void *input, void *input_gradient);

/* The number of the training step. It is part of the key of the random numbers. It is 0 at first, and each successful
 * run adds one. */
void remat_tape_set_step(remat_tape *tape, uint32_t step);
uint32_t remat_tape_step(const remat_tape *tape);

/* The bytes of the arena. They are known before the first run. */
uint64_t remat_tape_arena_bytes(const remat_tape *tape);

/* The plan in use. It belongs to the tape, unless it was given in the options. NULL for an online tape. Its peak counts
 * every activation in full. With a store the arena may be smaller than this peak. */
const remat_plan *remat_tape_plan(const remat_tape *tape);

/* The profile that the tape plans with: sizes rounded up, and the mode of the store added if store_planned is set.
 * Other programs can make plans for it. The caller destroys it. */
remat_status remat_tape_profile(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                                remat_profile **chain);

/* ---- figures ---- */

/* `store` is always the last member, because it may grow. */
typedef struct remat_tape_statistics {
    uint64_t arena_bytes;       /* the size of the arena */
    uint64_t peak_bytes;        /* the most that is live in it at once */
    uint64_t bookkeeping_bytes; /* what the tape holds besides the arena, measured after create */
    uint64_t kept_bytes;        /* of states that the backward uses as the first forward saved them */
    uint64_t avoided_bytes;     /* of states that are recomputed instead of kept */
    uint64_t runs;              /* successful ones */
    /* Of the last run, even if it failed: */
    uint64_t forwards, recomputes, backwards;                /* calls of your functions */
    uint64_t forward_ns, recompute_ns, loss_ns, backward_ns; /* time in your functions */
    uint64_t store_ns;  /* time to convert to and from 16 bits, and to hand over to the disk and wait for it */
    uint64_t verify_ns; /* time in the verify mode */
    uint64_t total_ns;  /* time of the whole run */
    uint64_t stored_bytes, restored_bytes; /* of activations moved to the store and back, counted in full */
    remat_store_counters store;
} remat_tape_statistics;
void remat_tape_get_statistics_sized(const remat_tape *tape, remat_tape_statistics *statistics, size_t statistics_size);
static inline void remat_tape_get_statistics(const remat_tape *tape, remat_tape_statistics *statistics)
{
    remat_tape_get_statistics_sized(tape, statistics, sizeof *statistics);
}

/* How often a layer runs forward in one run; 0 for an online tape. */
uint32_t remat_tape_forwards(const remat_tape *tape, size_t layer);

/* A remark about the last run, as a sentence, such as that the disk was too slow. "" if there is none. */
const char *remat_tape_remark(const remat_tape *tape);

/* ---- chains of unknown length ---- */

/* An online tape is for a chain of equal steps whose number is not known in advance. `layer` is a profile of one layer
 * whose input and output have the same size. At most `slots` states are held, the input included. The arena takes
 *
 *     (slots + 3) * output + activation + the largest workspace
 *
 * bytes, each rounded up to 64, however long the chain becomes. The budget is compared with this. Strategies, plans and
 * verify do not apply, and the store must be REMAT_TAPE_MEMORY. Errors are those of remat_tape_create.
 *
 *     remat_tape_create_online(ctx, layer, slots, &callbacks, NULL, &tape);
 *     remat_tape_begin(tape, input);
 *     while (!finished) {
 *         remat_tape_advance(tape);                  // the forward of the next step
 *         finished = look_at(remat_tape_output(tape));
 *     }
 *     remat_tape_reverse(tape, input_gradient);      // the loss and the whole backward pass
 *
 * After a reverse or a failure, call remat_tape_begin before the next advance. */
remat_status remat_tape_create_online_sized(remat_context *context, const remat_profile *layer, uint64_t slots,
                                            const remat_tape_callbacks *callbacks, size_t callbacks_size,
                                            const remat_tape_options *options, remat_tape **tape);
static inline remat_status remat_tape_create_online(remat_context *context, const remat_profile *layer, uint64_t slots,
                                                    const remat_tape_callbacks *callbacks,
                                                    const remat_tape_options *options, remat_tape **tape)
{
    return remat_tape_create_online_sized(context, layer, slots, callbacks, sizeof *callbacks, options, tape);
}
remat_status remat_tape_begin(remat_tape *tape, const void *input);
remat_status remat_tape_advance(remat_tape *tape);
/* The newest state. It is valid until the next call; NULL before begin. */
const void *remat_tape_output(const remat_tape *tape);
remat_status remat_tape_reverse(remat_tape *tape, void *input_gradient);

#ifdef __cplusplus
}
#endif
#endif
