/* Remat: schedules, and the simulator that checks them.
 *
 * A schedule is a list of steps: run a layer forward, run the loss, run a layer backward, drop a tensor. The simulator
 * plays a schedule step by step. It refuses illegal steps and computes the peak and the cost that docs/memory-model.md
 * defines. Its memory depends on the number of layers, not on the number of steps, so a schedule may have any
 * length. */
#ifndef REMAT_SCHEDULE_H
#define REMAT_SCHEDULE_H

#include <remat/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- steps ---- */

typedef enum remat_op {
    REMAT_FORWARD,    /* run `layer` forward and save its state in the mode `save` */
    REMAT_LOSS,       /* run the loss; `layer` is 0 */
    REMAT_BACKWARD,   /* run `layer` backward */
    REMAT_DROP_X,     /* drop x of `layer`: 0 is the input of the chain, i is the output of layer i-1 */
    REMAT_DROP_STATE, /* drop the saved state of `layer` */
} remat_op;

#define REMAT_NO_SAVE 0xffff /* a forward that makes its output and saves no state */
#define REMAT_KEEP    0      /* the mode `keep` */

/* One step. This struct never changes. */
typedef struct remat_step {
    uint32_t layer;
    uint16_t save; /* of a forward: the number of a mode, or REMAT_NO_SAVE */
    uint8_t op;    /* a remat_op */
} remat_step;

/* Receives the steps of a schedule in order. Any status but REMAT_OK ends the walk, and the walk returns it. */
typedef remat_status (*remat_step_fn)(void *user, remat_step step);

/* Writes a step for people, such as "forward 3, save keep". Returns `text`. */
#define REMAT_STEP_TEXT 96
const char *remat_step_print(const remat_profile *profile, remat_step step, char text[REMAT_STEP_TEXT]);

/* ---- the simulator ---- */

/* The figures of a whole schedule. */
typedef struct remat_figures {
    uint64_t steps;
    uint64_t peak_bytes;
    uint64_t peak_step; /* the first step that reaches the peak; REMAT_NOWHERE if the input alone is the peak */
    uint64_t total_cost;
    uint64_t kept_bytes;        /* of layers whose backward used the state that their first forward saved */
    uint64_t recompute_flops;   /* of all forwards except the first of each layer */
    uint64_t recomputed_layers; /* also those that saved 0 bytes: backward computes them again from their input */
    uint64_t largest_recomputed_bytes; /* the largest activation among the layers whose state was not saved */
} remat_figures;

typedef struct remat_simulator remat_simulator;

/* Makes a simulator at the start of a schedule. The profile must outlive it and must not change. REMAT_NO_MEMORY. */
remat_status remat_simulator_create(remat_context *context, const remat_profile *profile, remat_simulator **simulator);
void remat_simulator_destroy(remat_simulator *simulator);

/* Plays one step. REMAT_CHECK_FAILED: the step is not legal; the context says which one it is, and why. */
remat_status remat_simulator_step(remat_simulator *simulator, remat_step step);

/* Ends the schedule and gives its figures. REMAT_CHECK_FAILED: a layer had no backward. */
remat_status remat_simulator_finish_sized(remat_simulator *simulator, remat_figures *figures, size_t figures_size);
static inline remat_status remat_simulator_finish(remat_simulator *simulator, remat_figures *figures)
{
    return remat_simulator_finish_sized(simulator, figures, sizeof *figures);
}

/* ---- looking at a simulator ---- */

/* The bytes that are live now, in all. */
uint64_t remat_simulator_live_bytes(const remat_simulator *simulator);

/* Calls `visit` for each tensor that is live now. The struct remat_live_tensor never changes. */
typedef struct remat_live_tensor {
    char kind;      /* 'x': input or output, 's': saved state, 'y': gradient of an x */
    uint32_t layer; /* as in docs/memory-model.md: x 0 is the input of the chain, x i the output of layer i-1 */
    uint64_t bytes;
} remat_live_tensor;
typedef void (*remat_live_fn)(void *user, remat_live_tensor tensor);
void remat_simulator_live(const remat_simulator *simulator, remat_live_fn visit, void *user);

/* How often a layer has run forward so far. */
uint32_t remat_simulator_forwards(const remat_simulator *simulator, size_t layer);

/* The mode that a layer's first forward saved in, if its backward used that state. REMAT_NO_SAVE if the backward used a
 * recomputed state. Call it after the layer's backward. */
uint16_t remat_simulator_decision(const remat_simulator *simulator, size_t layer);

#ifdef __cplusplus
}
#endif
#endif
