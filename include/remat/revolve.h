/* Remat: checkpointing with a number of slots (Griewank and Walther, 2000), and for chains whose length is not known.
 *
 * Where all steps of a chain are alike (time steps of a simulation, a recurrent network) the cheapest schedule that
 * holds at most `slots` states at once, the input's included, is known in closed form. */
#ifndef REMAT_REVOLVE_H
#define REMAT_REVOLVE_H

#include <remat/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The forwards that save nothing in the cheapest schedule for `layers` equal steps: t*N - C(slots+t, t-1) with t the
 * least integer for which C(slots+t, slots) >= N. UINT64_MAX where it does not fit. slots must be at least 1. */
uint64_t remat_revolve_forwards(uint64_t layers, uint64_t slots);

/* Walks that schedule, the loss included, in memory proportional to the slots that are used. REMAT_INVALID for
 * slots 0; anything else that `visit` returns. */
remat_status remat_revolve_walk(remat_context *context, uint32_t layers, uint64_t slots, remat_step_fn visit,
                                void *user);

/* The online version: steps arrive one by one, and nobody knows which is the last.
 *
 *     remat_online_create(ctx, slots, &online);
 *     while (simulation goes on) remat_online_advance(online, visit, user);   // forward, and what to drop
 *     remat_online_reverse(online, visit, user);                              // loss, and all of the backward
 *
 * States are placed as in Wang, Moin and Iaccarino (2009), so that no step runs more often than it must for the
 * number of steps so far; the way back is the cheapest for the states that are held. */
typedef struct remat_online remat_online;
remat_status remat_online_create(remat_context *context, uint64_t slots, remat_online **online);
void remat_online_destroy(remat_online *online);
remat_status remat_online_advance(remat_online *online, remat_step_fn visit, void *user);
remat_status remat_online_reverse(remat_online *online, remat_step_fn visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
