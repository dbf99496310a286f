/* Remat: your own forward and backward functions in a memory budget.
 *
 * The tape is for code that has its own mathematics: the time steps of a simulator, a recurrent network, a hand-written
 * model, an adjoint solver. You say how many bytes each layer has (a profile) and give three callbacks. The tape plans,
 * owns the buffers, places them in one arena, calls forward, forward again, loss and backward in the right order, and
 * hands back the gradient:
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
 * With any plan, in memory or on disk, the results are the same to the bit as with everything kept.
 *
 * Memory: the data of a run lies in one allocation of exactly remat_tape_arena_bytes(), aligned to 64 bytes, made by
 * the first run and held until the tape is destroyed. Running allocates nothing else through the context's hook, with
 * one exception that has to be asked for: what REMAT_OVERFLOW_KEEP_FULL keeps in full. Besides the arena a tape holds
 * its bookkeeping, made by create and reported as bookkeeping_bytes: the figures of the plan (8 bytes a layer), a table
 * of what is live at once (about 80 bytes each), offsets (8 bytes for each life of a tensor; none where layers are
 * equal), a copy of the profile where its sizes had to be rounded, and the notes of the verify mode.
 *
 * Threads: a tape belongs to one thread at a time, as its context does. Callbacks run on the thread that called run. */
#ifndef REMAT_TAPE_H
#define REMAT_TAPE_H

#include <remat/plan.h>
#include <remat/random.h>
#include <remat/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- callbacks ---- */

typedef enum remat_tape_phase {
    REMAT_PHASE_FORWARD,   /* a layer's first forward in this run */
    REMAT_PHASE_RECOMPUTE, /* every other one */
    REMAT_PHASE_LOSS,
    REMAT_PHASE_BACKWARD
} remat_tape_phase;
const char *remat_tape_phase_name(remat_tape_phase phase); /* "forward", "recompute", "loss", "backward" */

/* What one callback gets. All buffers are the tape's, aligned to 64 bytes, do not overlap, and are good during the call
 * only. What does not apply is NULL. Sizes are those of the profile; a buffer of no bytes is not NULL but must not be
 * touched.
 *
 *              input         saved                    output            output_gradient  input_gradient
 *   forward    read          write, NULL: save none   write             -                -
 *   loss       last output   -                        -                 -                write
 *   backward   read          read (yours: it is       -                 read             write
 *                            dropped afterwards)
 *
 * A forward that saves writes its whole state to `saved`; the layer's output is the first output_bytes of it, and
 * `output` points there. In a mode of the profile that does not hold the output, `output` is a buffer of its own.
 * Gradients are written, not added to. A forward must make the same of the same input whenever it is called: what it
 * draws at random it draws from `random`. */
typedef struct remat_tape_call {
    uint32_t layer; /* position from 0; of the loss, the number of layers */
    uint16_t mode;  /* how the state is saved: REMAT_KEEP or a mode of the profile; REMAT_NO_SAVE where none is */
    remat_tape_phase phase;
    const void *input;
    void *saved;
    void *output;
    const void *output_gradient;
    void *input_gradient;
    void *workspace;     /* forward_, backward_ or loss_workspace_bytes; NULL where that is 0 */
    remat_random random; /* of this layer in this run: the same for each forward and the backward */
} remat_tape_call;

/* Anything but 0 ends the run; remat_tape_run returns it unchanged, and the context names layer and phase. The tape can
 * be run again. A callback that runs its own tape gets REMAT_INVALID. */
typedef int (*remat_tape_fn)(void *user, const remat_tape_call *call);

typedef struct remat_tape_callbacks {
    remat_tape_fn forward, backward, loss; /* all needed */
    void *user;
} remat_tape_callbacks;

/* Called after each callback: `done` of `total` (0 where nobody knows yet). Anything but 0 ends the run likewise. */
typedef int (*remat_tape_progress_fn)(void *user, uint64_t done, uint64_t total, remat_tape_phase phase,
                                      uint32_t layer);

/* ---- options ---- */

/* Where that which waits for its backward lies meanwhile. */
typedef enum remat_tape_store {
    REMAT_TAPE_MEMORY, /* in the arena, as it is */
    REMAT_TAPE_FP16,   /* in the arena, in 16 bits: half the bytes, rounded; floats only */
    REMAT_TAPE_BF16,
    REMAT_TAPE_DISK /* in a nameless file, written and read in the background, checked by hashes */
} remat_tape_store;

typedef enum remat_tape_verify {
    REMAT_VERIFY_OFF,
    REMAT_VERIFY_HASHES, /* of 4 KiB chunks: 0.2 % of the bytes of all states; says which chunk differs */
    REMAT_VERIFY_COPIES  /* of everything; says which element differs, and both values */
} remat_tape_verify;

typedef struct remat_tape_options {
    size_t struct_size;

    /* The plan. Give one of `plan` and `plan_path`, or neither and a strategy, a budget or both. */
    const char *strategy;   /* as in remat_plan_options */
    uint64_t budget_bytes;  /* binds arena_bytes, whatever the plan; REMAT_NO_BUDGET: none */
    uint64_t *least_bytes;  /* where not NULL, gets the smallest arena that was found, if the budget is too small */
    bool allow_lossy;       /* the planner may use the profile's lossy modes; a 16-bit store implies it */
    const remat_plan *plan; /* made for this profile or for remat_tape_profile's; must outlive the tape */
    const char *plan_path;  /* a plan file, likewise; with store_planned, for remat_tape_profile's */

    /* The store. Without store_planned every activation for which at least `wait_steps` callbacks pass between two uses
     * goes there meanwhile, whatever the plan. With it every layer has one more mode, named fp16, bf16 or disk, and the
     * plan says where it is used: forward runs as if kept, the state goes to the store, and the output, which the mode
     * does not hold, lies in the arena. The chain's input is never rounded. */
    remat_tape_store store;
    bool store_planned;
    remat_element element;   /* of input, states and outputs; REMAT_FLOATS. REMAT_BYTES: no 16 bits */
    remat_overflow overflow; /* of 16 bits. KEEP_FULL keeps what overflows outside the arena, by one allocation each */
    const char *directory;   /* of the disk store; must exist; default "." */
    uint32_t write_steps;    /* callbacks that may pass before a state is written (the arena has it meanwhile); 4 */
    uint32_t read_steps;     /* callbacks before its use that reading begins; 4 */
    uint32_t wait_steps;     /* 0: 1 in 16 bits; on disk write_steps + read_steps + 2, which is the least there */

    remat_tape_verify verify; /* not with a 16-bit store: what starts from rounded numbers does not come out the same */
    uint64_t seed;            /* of the random numbers */
    remat_tape_progress_fn progress;
    void *progress_user;
} remat_tape_options;
void remat_tape_options_init(remat_tape_options *options);

/* ---- tapes ---- */

typedef struct remat_tape remat_tape;

/* Plans and places. The profile's sizes are rounded up to 64 bytes; costs guide the planner. The profile must outlive
 * the tape and stay as it is; callbacks and options are copied; `options` NULL: the defaults, everything kept. The
 * caller destroys the tape, before the context. On failure *tape is NULL:
 *   REMAT_INFEASIBLE  the budget is too small; the message and *least_bytes say what would do;
 *   REMAT_INVALID     options, or a profile that does not go with them; the message names the field;
 *   REMAT_BAD_INPUT, REMAT_CHECK_FAILED  the plan file, or a plan that is not legal for this profile;
 *   REMAT_IO          the plan file, or the directory of the disk store; REMAT_NO_MEMORY. */
remat_status remat_tape_create(remat_context *context, const remat_profile *profile,
                               const remat_tape_callbacks *callbacks, const remat_tape_options *options,
                               remat_tape **tape);
void remat_tape_destroy(remat_tape *tape);

/* One pass forward and backward. `input` is input_bytes long and copied; NULL where there are none. `input_gradient`
 * gets input_gradient_bytes; NULL where it is not wanted. With no layers nothing is called and nothing is written.
 * Returns what a callback returned, or
 *   REMAT_CHECK_FAILED  the verify mode found a difference, or a number was too large for 16 bits;
 *   REMAT_IO            the disk failed, or gave back what was not written;
 *   REMAT_NO_MEMORY     there was no memory for the arena.
 * After any failure the tape is as before the run. */
remat_status remat_tape_run(remat_tape *tape, const void *input, void *input_gradient);

/* The number of the training step, part of the random numbers' key: 0 at first, one more after each successful run. */
void remat_tape_set_step(remat_tape *tape, uint32_t step);
uint32_t remat_tape_step(const remat_tape *tape);

/* What the arena takes, known before the first run. */
uint64_t remat_tape_arena_bytes(const remat_tape *tape);

/* The plan in use, for the figures and the schedule; owned by the tape (or as given in the options). NULL for an online
 * tape. Its peak counts everything in full: with a store the arena may be smaller. */
const remat_plan *remat_tape_plan(const remat_tape *tape);

/* The chain that the tape plans with: sizes rounded, and the store's mode added with store_planned. Plans for it can be
 * made by other programs. The caller destroys it. */
remat_status remat_tape_profile(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                                remat_profile **chain);

/* ---- figures ---- */

typedef struct remat_tape_statistics {
    uint64_t arena_bytes, peak_bytes; /* placed, and most live in the arena at once */
    uint64_t bookkeeping_bytes;       /* what the tape holds besides, by the context's count after create */
    uint64_t kept_bytes;              /* states of which the backward used what the first forward saved */
    uint64_t avoided_bytes;           /* states that were made again, in full, and so did not have to be kept */
    uint64_t runs;                    /* that went through */
    /* Of the last run, also one that failed. */
    uint64_t forwards, recomputes, backwards;                /* callbacks */
    uint64_t forward_ns, recompute_ns, loss_ns, backward_ns; /* in callbacks */
    uint64_t store_ns; /* packing and unpacking 16 bits, handing to the disk, waiting for it */
    uint64_t verify_ns;
    uint64_t total_ns;                     /* the rest is the tape itself */
    uint64_t stored_bytes, restored_bytes; /* in full, to the store and back */
    remat_store_counters store;            /* store.kept_up: whether the disk kept up */
} remat_tape_statistics;
void remat_tape_get_statistics(const remat_tape *tape, remat_tape_statistics *statistics);

/* How often a layer runs forward in one run; 0 for an online tape. */
uint32_t remat_tape_forwards(const remat_tape *tape, size_t layer);

/* What there is to say about the last run for people, such as that the disk did not keep up; "" if nothing. */
const char *remat_tape_remark(const remat_tape *tape);

/* ---- chains of unknown length ---- */

/* For steps that are all alike and of which nobody knows the last: `layer` is a profile of one layer, input and output
 * of the same size. At most `slots` states are held, the input's included. The arena takes
 *     (slots + 3) output + activation + the largest workspace
 * bytes, all rounded up to 64, however long the chain becomes. Plan, budget (checked against this) and verify do not
 * apply; the store must be REMAT_TAPE_MEMORY.
 *
 *     remat_tape_create_online(ctx, layer, slots, &callbacks, NULL, &tape);
 *     remat_tape_begin(tape, input);
 *     while (!finished) {
 *         remat_tape_advance(tape);                  // forward of the next layer
 *         finished = look_at(remat_tape_output(tape));
 *     }
 *     remat_tape_reverse(tape, input_gradient);      // loss, and all of the backward
 *
 * The first advance after a reverse, or after a failure, needs a begin. */
remat_status remat_tape_create_online(remat_context *context, const remat_profile *layer, uint64_t slots,
                                      const remat_tape_callbacks *callbacks, const remat_tape_options *options,
                                      remat_tape **tape);
remat_status remat_tape_begin(remat_tape *tape, const void *input);
remat_status remat_tape_advance(remat_tape *tape);
/* The newest state, good until the next call; NULL before begin. */
const void *remat_tape_output(const remat_tape *tape);
remat_status remat_tape_reverse(remat_tape *tape, void *input_gradient);

#ifdef __cplusplus
}
#endif
#endif
