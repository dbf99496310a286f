/* The machine that carries out a schedule: which tensors are live, where, and what moves between arena and store.
 *
 * The same code walks a schedule dry, to see how much room it takes and when, and for real: what was planned and what
 * happens cannot differ. A walk is: machine_start, machine_step for each step, machine_stop. Three kinds follow one
 * another:
 *   1. with a store only, scanning: between which uses of a tensor does enough time pass that it should leave;
 *   2. dry, with a placer that counts, and one that records where the pool is not good enough;
 *   3. for real, as often as the user runs the tape.
 *
 * What happens around the callback of step t when something waits in a store:
 *
 *   16 bits   [unpack x]  callback t  [pack x]        each in a tick of its own: lives are as short as can be
 *   disk      callback t  put x ... t + write_steps: the room is given back, once it has been written
 *             ... t' - read_steps: room is taken, the read begins ... get x, callback t' */
#ifndef REMAT_TAPE_TAPE_MACHINE_H
#define REMAT_TAPE_TAPE_MACHINE_H

#include <remat/tape.h>

#include "graph/chain.h"
#include "tape/tape_placer.h"

enum { TENSOR_X, TENSOR_S, TENSOR_Y };
#define TENSOR_NONE UINT32_MAX

typedef struct tape_tensor {
    uint64_t at;                   /* in the arena, where it has room there */
    uint64_t kept;                 /* in 16 bits: in the arena; on disk: its block. Where `stored` */
    uint64_t bytes;                /* of its room */
    uint64_t leaves_at;            /* the callback before which its room is given back, where `leaving` */
    uint64_t last_use, last_event; /* scanning */
    uint32_t layer;                /* x_i, s_i, y_i */
    uint32_t next;                 /* in its bucket, or free */
    uint32_t aside;                /* kept in full: one more than its number in the tape's list; 0: not */
    uint16_t mode;                 /* of s_i */
    uint8_t kind;
    bool has_room;
    bool arriving; /* has room, and is being read into it */
    bool stored;   /* the store has it, too */
    bool leaving;
    bool leave_next; /* after the callback at hand */
} tape_tensor;

/* A use for which something has to be read from disk. */
typedef struct tape_arrival {
    uint64_t step; /* the callback's number */
    uint32_t layer;
    uint8_t kind;
} tape_arrival;

typedef struct tape_departure {
    uint64_t at;
    uint32_t tensor;
} tape_departure;

/* What goes to the store, and when. */
typedef struct tape_store_policy {
    remat_tape_store kind;
    bool planned; /* the last mode of each layer is the store's, and nothing else goes there */
    uint64_t wait_steps, write_steps, read_steps;
} tape_store_policy;

/* A callback at hand: tensors by number, or TENSOR_NONE. */
typedef struct machine_call {
    remat_tape_phase phase;
    uint32_t layer;
    uint16_t mode;
    uint32_t input, saved, output, output_gradient, input_gradient;
    bool output_in_saved; /* the output is the first part of `saved` */
    bool copy_output;     /* likewise, and it has to be copied to `output` afterwards */
    uint64_t workspace, workspace_bytes;
} machine_call;

typedef struct tape_machine {
    remat_context *context;
    const remat_profile *chain;
    bool uniform; /* every layer is layer 0 of the chain */
    tape_store_policy store;
    tape_placer placer;
    tape_pool blocks;        /* of the disk's file */
    struct remat_tape *tape; /* where the callbacks really run; NULL: dry */
    bool scanning;
    uint64_t now;       /* ticks */
    uint64_t done;      /* callbacks */
    uint32_t frontier;  /* layers that ran forward */
    uint64_t callbacks; /* of the whole schedule, once it was walked */

    tape_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    uint32_t free_tensor;
    uint32_t *buckets; /* by kind and layer; TENSOR_NONE ends a chain */
    size_t bucket_count;

    uint8_t *leave_bits; /* one a use, in the order of uses */
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

/* The start of a walk: x_0 has room. */
remat_status machine_start(tape_machine *machine);
/* One step of a schedule that is legal. */
remat_status machine_step(tape_machine *machine, remat_step step);
/* The end, after the last step or a failure: nothing is live. */
void machine_stop(tape_machine *machine);

/* ---- tensors (tape_tensors.c) ---- */

remat_status tensors_reserve(tape_machine *machine, size_t count);
void tensors_forget(tape_machine *machine);
uint32_t tensors_find(const tape_machine *machine, uint8_t kind, uint32_t layer);
/* A new tensor with room for `bytes`; `mode` is that of a state. */
remat_status tensors_add(tape_machine *machine, uint8_t kind, uint32_t layer, uint16_t mode, uint64_t bytes,
                         uint32_t *number);
/* Gives back its room and what the store has of it. */
remat_status tensors_drop(tape_machine *machine, uint32_t number);

/* ---- moving (tape_moves.c) ---- */

/* Before the callback `machine->done`: rooms that are due are given back, reads that are due begin. */
remat_status moves_before(tape_machine *machine);
/* A use in the callback at hand: makes sure that the bytes are there. */
remat_status moves_use(tape_machine *machine, uint32_t number);
/* Notes a use or a creation, after the bytes are there; `forced`: it goes to the store in any case. */
remat_status moves_note(tape_machine *machine, uint32_t number, bool forced);
/* After the callback: it leaves if it should. */
remat_status moves_after(tape_machine *machine, uint32_t number);
/* Gives back its room, once nobody else uses it; and what the store has of it. */
remat_status moves_give_room(tape_machine *machine, tape_tensor *tensor);
void moves_forget(tape_machine *machine, tape_tensor *tensor);

static inline const remat_layer *machine_layer(const tape_machine *machine, uint32_t layer)
{
    return &machine->chain->layers[machine->uniform ? 0 : layer];
}

/* Whether a mode of a layer is the store's own. */
static inline bool machine_store_mode(const tape_machine *machine, uint32_t layer, uint16_t mode)
{
    return machine->store.planned && mode == machine_layer(machine, layer)->mode_count - 1;
}

static inline bool store_is_half(remat_tape_store kind)
{
    return kind == REMAT_TAPE_FP16 || kind == REMAT_TAPE_BF16;
}

/* What `bytes` of room come to in 16 bits. */
static inline uint64_t half_room(uint64_t bytes)
{
    return (bytes / 2 + TAPE_ALIGNMENT - 1) / TAPE_ALIGNMENT * TAPE_ALIGNMENT;
}

#endif
