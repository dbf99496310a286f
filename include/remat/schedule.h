/* Remat: schedules, and the one simulator that judges them.
 *
 * A schedule is a list of steps. What each step needs, adds and drops, and how peak and cost follow, is the memory
 * model of docs/memory-model.md. The simulator replays it, one step at a time, in memory linear in the layers and
 * not in the steps; a schedule never has to be in memory as a whole. */
#ifndef REMAT_SCHEDULE_H
#define REMAT_SCHEDULE_H

#include <remat/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum remat_op {
    REMAT_FORWARD,    /* run `layer` forward; `save` says in which mode its state is saved, if at all */
    REMAT_LOSS,       /* run the loss; `layer` is 0 */
    REMAT_BACKWARD,   /* run `layer` backward */
    REMAT_DROP_X,     /* drop x of `layer`: 0 is the chain's input, i the output of layer i-1 */
    REMAT_DROP_STATE, /* drop the saved state of `layer` */
} remat_op;

#define REMAT_NO_SAVE 0xffff /* a forward that makes its output and saves nothing */
#define REMAT_KEEP    0      /* the layer's own figures */

typedef struct remat_step {
    uint32_t layer;
    uint16_t save; /* of a forward: a mode's number or REMAT_NO_SAVE */
    uint8_t op;    /* a remat_op */
} remat_step;

/* Takes the steps of a schedule one by one. Anything but REMAT_OK stops the walk and is handed back by it. */
typedef remat_status (*remat_step_fn)(void *user, remat_step step);

/* Writes a step for people, such as `forward 3, save keep`. Returns `text`, always terminated. */
#define REMAT_STEP_TEXT 96
const char *remat_step_print(const remat_profile *profile, remat_step step, char text[REMAT_STEP_TEXT]);

/* What a whole schedule comes to. */
typedef struct remat_figures {
    uint64_t steps;
    uint64_t peak_bytes;
    uint64_t peak_step; /* the first step that reaches the peak; REMAT_NOWHERE where that is the input alone */
    uint64_t total_cost;
    uint64_t kept_bytes;      /* of layers whose backward used what their first forward saved */
    uint64_t recompute_flops; /* of every forward but the first */
    uint64_t recomputed_layers;
    uint64_t largest_recomputed_bytes;
} remat_figures;

typedef struct remat_simulator remat_simulator;

/* A simulator at the start of a schedule. The profile must outlive it and stay as it is. */
remat_status remat_simulator_create(remat_context *context, const remat_profile *profile, remat_simulator **simulator);
void remat_simulator_destroy(remat_simulator *simulator);

/* Plays one step. REMAT_CHECK_FAILED where it is not legal: the context says which step it was, and why. */
remat_status remat_simulator_step(remat_simulator *simulator, remat_step step);

/* Ends the schedule: every layer had its backward (REMAT_CHECK_FAILED otherwise), and these are its figures. */
remat_status remat_simulator_finish(remat_simulator *simulator, remat_figures *figures);

/* What is live right now, and the bytes in all. */
uint64_t remat_simulator_live_bytes(const remat_simulator *simulator);
typedef struct remat_live_tensor {
    char kind; /* 'x', 's' or 'y' */
    uint32_t layer;
    uint64_t bytes;
} remat_live_tensor;
typedef void (*remat_live_fn)(void *user, remat_live_tensor tensor);
void remat_simulator_live(const remat_simulator *simulator, remat_live_fn visit, void *user);

/* Of one layer: how often it ran forward so far; and the mode in which the state that its backward used was saved by
 * its first forward, or REMAT_NO_SAVE where it was recomputed (good after its backward). */
uint32_t remat_simulator_forwards(const remat_simulator *simulator, size_t layer);
uint16_t remat_simulator_decision(const remat_simulator *simulator, size_t layer);

#ifdef __cplusplus
}
#endif
#endif
