/* The inside of a tape. */
#ifndef REMAT_TAPE_TAPE_OBJECT_H
#define REMAT_TAPE_TAPE_OBJECT_H

#include "store/disk_store.h"
#include "base/half.h"
#include "tape/tape_machine.h"
#include "tape/tape_walker.h"

#include <remat/revolve.h>

struct tape_verifier;

/* An activation that did not fit into 16 bits. */
typedef struct tape_aside {
    void *memory; /* NULL: this entry is free */
    size_t bytes;
} tape_aside;

struct remat_tape {
    remat_context *context;
    const remat_profile *profile; /* the user's: exact sizes */
    const remat_profile *chain;   /* with rounded sizes and the store's modes; may equal profile */
    remat_profile *own_chain;     /* if the tape made the chain */
    remat_tape_callbacks callbacks;
    remat_tape_options options; /* its texts are not kept */
    const remat_plan *plan;
    remat_plan *own_plan; /* if the tape made the plan */
    tape_walker walker;   /* of the plan */
    uint64_t slots;       /* of an online tape; 0: it is not one */
    remat_online *online;
    bool begun;   /* its chain was begun */
    bool calling; /* a callback is running */

    tape_machine machine;
    unsigned char *arena;
    uint64_t arena_bytes;
    disk_store *disk;
    const half_kernels *kernels;
    tape_aside *asides;
    size_t aside_count, aside_capacity;
    struct tape_verifier *verifier;

    uint32_t step; /* of training */
    remat_tape_statistics statistics;
    uint64_t overflows, kept_full;
    char remark[256];
    _Alignas(TAPE_ALIGNMENT) unsigned char nothing[TAPE_ALIGNMENT]; /* the address of tensors without bytes */
};

/* ---- what the machine does for real; a NULL tape is a dry walk (tape_call.c) ---- */

remat_status tape_call(remat_tape *tape, const machine_call *call);
void tape_workspace_taken(remat_tape *tape, const machine_call *call);
void tape_room_taken(remat_tape *tape, const tape_tensor *tensor);
void tape_room_given(remat_tape *tape, uint64_t at, uint64_t bytes);
void tape_half_room_taken(remat_tape *tape, const tape_tensor *tensor);
void tape_rooms_forget(remat_tape *tape); /* nothing in the arena is live */
void tape_arena_open(remat_tape *tape);   /* all of it may be accessed: before it is released */
unsigned char *tape_address(remat_tape *tape, uint64_t at);
/* The bytes of a tensor as the user knows them. */
uint64_t tape_exact_bytes(const remat_tape *tape, const tape_tensor *tensor);
const remat_layer *tape_user_layer(const remat_tape *tape, uint32_t layer);
uint64_t tape_clock(void); /* nanoseconds */

/* ---- stores (tape_store.c) ---- */

remat_status tape_store_create(remat_tape *tape);
/* Opens the disk's file and closes the previous one; tests inject faults through `io`. */
remat_status tape_store_open(remat_tape *tape, const char *directory, const disk_io *io);
void tape_store_destroy(remat_tape *tape);
/* Before and after a run. */
void tape_store_begin(remat_tape *tape);
void tape_store_end(remat_tape *tape);
remat_status tape_half_pack(remat_tape *tape, tape_tensor *tensor);
remat_status tape_half_unpack(remat_tape *tape, tape_tensor *tensor);
void tape_half_forget(remat_tape *tape, tape_tensor *tensor);
remat_status tape_disk_put(remat_tape *tape, const tape_tensor *tensor);
remat_status tape_disk_prefetch(remat_tape *tape, const tape_tensor *tensor);
remat_status tape_disk_get(remat_tape *tape, const tape_tensor *tensor);
remat_status tape_disk_wait(remat_tape *tape, const tape_tensor *tensor);

/* ---- verifying (tape_verify.c) ---- */

remat_status tape_verify_create(remat_tape *tape);
void tape_verify_destroy(remat_tape *tape);
void tape_verify_begin(remat_tape *tape);
remat_status tape_verify_forward(remat_tape *tape, const remat_tape_call *call);

/* ---- making (tape_options.c, tape_chain.c, tape_plan.c) ---- */

remat_status tape_options_take(remat_context *context, const remat_tape_options *given, remat_tape_options *options);
remat_status tape_options_check(remat_context *context, const remat_profile *profile,
                                const remat_tape_options *options);
tape_store_policy tape_options_policy(const remat_tape_options *options);
const char *tape_store_name(remat_tape_store kind); /* also the name of its mode */
/* Makes the chain with rounded sizes; *own is NULL if the profile needs no change. */
remat_status tape_chain_make(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                             remat_profile **own);
/* Chooses the plan and places it: fills in plan, walker, machine and arena_bytes. */
remat_status tape_plan_choose(remat_tape *tape);
/* REMAT_INFEASIBLE if the arena is larger than the budget. */
remat_status tape_budget_check(remat_tape *tape);
/* Does a dry walk of the plan, finds an offset for every tensor, and sets arena_bytes. */
remat_status tape_place(remat_tape *tape);

/* ---- running (tape_run.c) ---- */

/* REMAT_INVALID if called from a callback. */
remat_status tape_refuse_callbacks(const remat_tape *tape);
remat_status tape_run_begin(remat_tape *tape, const void *input);
void tape_run_end(remat_tape *tape, remat_status status, uint64_t began);
void tape_run_hand_out(remat_tape *tape, void *input_gradient);
remat_status tape_run_step(void *tape, remat_step step);
/* A tape with its options and callbacks, and nothing planned. */
remat_status tape_object_create(remat_context *context, const remat_profile *profile,
                                const remat_tape_callbacks *callbacks, size_t callbacks_size,
                                const remat_tape_options *options, remat_tape **tape);

#endif
