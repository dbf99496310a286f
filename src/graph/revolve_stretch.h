/* The reversal of a stretch of equal layers with a number of slots, for the strategies built on it. */
#ifndef REMAT_GRAPH_REVOLVE_STRETCH_H
#define REMAT_GRAPH_REVOLVE_STRETCH_H

#include <remat/revolve.h>

/* Reverses the layers first .. first+count-1. x_first is live and holds one of the slots; what this makes it drops.
 * Where `with_loss`, the loss runs when the last layer has run for the first time. */
remat_status revolve_stretch(remat_context *context, uint32_t first, uint32_t count, uint64_t slots, bool with_loss,
                             remat_step_fn visit, void *user);

#endif
