/* Remat: checkpointing with a number of slots (Griewank and Walther, 2000).
 *
 * This is for chains of equal layers: the time steps of a simulation, or a recurrent network. At most `slots` states
 * are held at once, the input of the chain included. For equal layers the cheapest schedule is known in closed form. A
 * second version is for chains whose length is not known in advance. */
#ifndef REMAT_REVOLVE_H
#define REMAT_REVOLVE_H

#include <remat/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many forwards of the cheapest schedule save nothing: t * N - C(slots + t, t - 1) for N layers, where t is the
 * smallest integer with C(slots + t, slots) >= N. UINT64_MAX if the number is too large. `slots` must be at least 1.
 * Safe from any thread. */
uint64_t remat_revolve_forwards(uint64_t layers, uint64_t slots);

/* Walks the cheapest schedule, the loss included. It needs memory for the slots in use. REMAT_INVALID: slots is 0.
 * REMAT_NO_MEMORY, or the status that `visit` returned. */
remat_status remat_revolve_walk(remat_context *context, uint32_t layers, uint64_t slots, remat_step_fn visit,
                                void *user);

/* Chains whose length is not known in advance:
 *
 *     remat_online_create(ctx, slots, &online);
 *     while (the simulation goes on)
 *         remat_online_advance(online, visit, user);   // a forward, and perhaps a drop
 *     remat_online_reverse(online, visit, user);       // the loss and the whole backward pass
 *
 * Which states are kept follows Wang, Moin and Iaccarino (2009): no step is repeated more often than the number of
 * steps so far requires. The backward pass is the cheapest one for the states that are held. REMAT_INVALID: slots is
 * 0, or the chain was reversed already. REMAT_NO_MEMORY, or the status that `visit` returned. */
typedef struct remat_online remat_online;
remat_status remat_online_create(remat_context *context, uint64_t slots, remat_online **online);
void remat_online_destroy(remat_online *online);
remat_status remat_online_advance(remat_online *online, remat_step_fn visit, void *user);
remat_status remat_online_reverse(remat_online *online, remat_step_fn visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
