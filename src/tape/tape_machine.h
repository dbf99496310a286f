/* The machine carries out a schedule. It knows which tensors are live and where, and moves them between arena and
 * store.
 *
 * The same code does dry walks, which find how much memory the schedule takes and when, and the real run. So plan and
 * run cannot differ. A walk is: machine_start, machine_step for each step, machine_stop. There are three kinds of
 * walks, in this order:
 *   1. scanning, only with a store: finds the uses of tensors after which they should move to the store;
 *   2. dry, with a placer that counts, and again with one that records if the pool is not good enough;
 *   3. real, each time the user runs the tape.
 *
 * What happens around the callback of step t when a tensor x is in a store:
 *
 *   16 bits   [unpack x]  callback t  [pack x]        each in its own tick, to keep live ranges short
 *   disk      callback t  put x ... t + write_steps: waits for the write, then releases the memory of x
 *             ... t' - read_steps: allocates memory for x and begins to read ... get x, callback t' */
#ifndef REMAT_TAPE_TAPE_MACHINE_H
#define REMAT_TAPE_TAPE_MACHINE_H

#include <remat/tape.h>

#include "graph/chain.h"
#include "tape/tape_placer.h"

enum { TENSOR_X, TENSOR_S, TENSOR_Y };
#define TENSOR_NONE UINT32_MAX

typedef struct tape_tensor {
    uint64_t at;                   /* its offset in the arena, if has_room */
    uint64_t kept;                 /* if `stored`: the offset in the arena (16 bits), or the block (disk) */
    uint64_t bytes;                /* of its room */
    uint64_t leaves_at;            /* if `leaving`: the callback before which its room is released */
    uint64_t last_use, last_event; /* scanning */
    uint32_t layer;                /* x_i, s_i, y_i */
    uint32_t next;                 /* in its bucket, or in the free list */
    uint32_t aside;                /* if kept in full: its number in the tape's list, plus 1; else 0 */
    uint16_t mode;                 /* of s_i */
    uint8_t kind;
    bool has_room;
    bool arriving; /* it is being read from disk into its room */
    bool stored;   /* the store has a copy */
    bool leaving;
    bool leave_next; /* after the current callback */
} tape_tensor;

/* A use of a tensor that must be read from disk before. */
typedef struct tape_arrival {
    uint64_t step; /* the callback's number */
    uint32_t layer;
    uint8_t kind;
} tape_arrival;

typedef struct tape_departure {
    uint64_t at;
    uint32_t tensor;
} tape_departure;

/* Which tensors go to the store, and when. */
typedef struct tape_store_policy {
    remat_tape_store kind;
    bool planned; /* only states in the last mode of each layer, the store's, go to the store */
    uint64_t wait_steps, write_steps, read_steps;
} tape_store_policy;

/* The current callback: tensors by number, or TENSOR_NONE. */
typedef struct machine_call {
    remat_tape_phase phase;
    uint32_t layer;
    uint16_t mode;
    uint32_t input, saved, output, output_gradient, input_gradient;
    bool output_in_saved; /* the output is the first part of `saved` */
    bool copy_output;     /* likewise, and it must be copied to `output` after the callback */
    uint64_t workspace, workspace_bytes;
} machine_call;

typedef struct tape_machine {
    remat_context *context;
    const remat_profile *chain;
    bool uniform; /* every layer is layer 0 of the chain */
    tape_store_policy store;
    tape_placer placer;
    tape_pool blocks;        /* of the disk's file */
    struct remat_tape *tape; /* whose callbacks run; NULL: a dry walk */
    bool scanning;
    uint64_t now;       /* ticks */
    uint64_t done;      /* callbacks */
    uint32_t frontier;  /* layers that ran forward */
    uint64_t callbacks; /* of the whole schedule, after the first walk */

    tape_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    uint32_t free_tensor;
    uint32_t *buckets; /* by kind and layer; TENSOR_NONE ends a chain */
    size_t bucket_count;

    uint8_t *leave_bits; /* one bit for each use, in order */
    size_t leave_capacity;
    uint64_t event;
    tape_arrival *arrivals; /* in the order of uses */
    size_t arrival_count, arrival_capacity, arrival;
    tape_departure *departures; /* a ring, in the order of `at` */
    size_t departure_capacity, departure_first, departure_count;
} tape_machine;

remat_status machine_create(tape_machine *machine, remat_context *context, const remat_profile *chain,
                            const tape_store_policy *store);
void machine_clear(tape_machine *machine);

/* Starts a walk, and allocates x_0. */
remat_status machine_start(tape_machine *machine);
/* Runs one step of a legal schedule. */
remat_status machine_step(tape_machine *machine, remat_step step);
/* Ends a walk, after the last step or a failure. Nothing is live then. */
void machine_stop(tape_machine *machine);

/* ---- tensors (tape_tensors.c) ---- */

remat_status tensors_reserve(tape_machine *machine, size_t count);
void tensors_forget(tape_machine *machine);
uint32_t tensors_find(const tape_machine *machine, uint8_t kind, uint32_t layer);
/* A new tensor with room for `bytes`; `mode` is that of a state. */
remat_status tensors_add(tape_machine *machine, uint8_t kind, uint32_t layer, uint16_t mode, uint64_t bytes,
                         uint32_t *number);
/* Releases its room and its copy in the store. */
remat_status tensors_drop(tape_machine *machine, uint32_t number);

/* ---- moving (tape_moves.c) ---- */

/* Before the callback `machine->done`: releases the rooms that are due, and starts the reads that are due. */
remat_status moves_before(tape_machine *machine);
/* Before a use in the current callback: makes sure that the bytes are in the arena. */
remat_status moves_use(tape_machine *machine, uint32_t number);
/* Notes a use or a creation, after the bytes are in the arena. `forced`: the tensor goes to the store in any case. */
remat_status moves_note(tape_machine *machine, uint32_t number, bool forced);
/* After the callback: moves the tensor to the store if it should leave. */
remat_status moves_after(tape_machine *machine, uint32_t number);
/* Release its room, after waiting for a write from it; and its copy in the store. */
remat_status moves_give_room(tape_machine *machine, tape_tensor *tensor);
void moves_forget(tape_machine *machine, tape_tensor *tensor);

static inline const remat_layer *machine_layer(const tape_machine *machine, uint32_t layer)
{
    return &machine->chain->layers[machine->uniform ? 0 : layer];
}

/* Whether a mode of a layer is the mode of the store. */
static inline bool machine_store_mode(const tape_machine *machine, uint32_t layer, uint16_t mode)
{
    return machine->store.planned && mode == machine_layer(machine, layer)->mode_count - 1;
}

static inline bool store_is_half(remat_tape_store kind)
{
    return kind == REMAT_TAPE_FP16 || kind == REMAT_TAPE_BF16;
}

/* The room in 16 bits for a tensor with `bytes` of room. */
static inline uint64_t half_room(uint64_t bytes)
{
    return (bytes / 2 + TAPE_ALIGNMENT - 1) / TAPE_ALIGNMENT * TAPE_ALIGNMENT;
}

#endif
