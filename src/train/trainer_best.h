/* Keeping the best weights of a run in a file, and going back to them. */
#ifndef REMAT_TRAIN_TRAINER_BEST_H
#define REMAT_TRAIN_TRAINER_BEST_H

#include "train/trainer_object.h"

/* Saves the trainer as the best so far. A failure is a warning; *written says whether it worked. */
void trainer_save_best(const remat_trainer *trainer, const char *path, bool with_state, bool *written);

/* Gives the trainer the weights, and with `with_state` the state, that it had after best_step. `written`: this run has
 * written the file. Otherwise it is taken only if it has that step; if not, a warning says so and *restored is false. */
remat_status trainer_restore_best(remat_trainer *trainer, const char *path, bool with_state, bool written,
                                  bool *restored);

#endif
