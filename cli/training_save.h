/* Saving a training so that it is not lost. */
#ifndef REMAT_CLI_TRAINING_SAVE_H
#define REMAT_CLI_TRAINING_SAVE_H

#include "command.h"

enum { TRAINING_SAVE_MESSAGE = 8192 };

/* Saves to `path`. If that fails, because the disk is full or the folder is gone, it tries the working folder, the folder
 * of temporary files, the home folder and at last /dev/shm, which is in memory: one full disk often holds all others. Returns
 * the status of `path`; `message` says what failed and where the training was saved instead, or that it is not saved. It is
 * empty if nothing failed. */
remat_status training_save(remat_context *context, const remat_trainer *trainer, const char *path, bool with_state,
                           char message[TRAINING_SAVE_MESSAGE]);

#endif
