/* Saving a training so that it is not lost. */
#ifndef REMAT_CLI_TRAINING_SAVE_H
#define REMAT_CLI_TRAINING_SAVE_H

#include "command.h"

enum { TRAINING_SAVE_MESSAGE = 8192 };

/* Where a training is saved: a file, or a folder in Hugging Face's layout. */
typedef struct training_target {
    const char *path; /* NULL: it is not saved */
    bool is_folder;
    bool with_state; /* of a file */
    bool merge;      /* of a folder: the adapters are added to the weights */
} training_target;

/* Whether `target` can be written now: call it before the first step. */
remat_status training_save_check(const remat_trainer *trainer, const training_target *target);

/* Saves to `target`. If that fails, because the disk is full or the folder is gone, it tries the working folder, the folder
 * of temporary files, the home folder and at last /dev/shm, which is in memory: one full disk often holds all others. Returns
 * the status of `target`; `message` says what failed and where the training was saved instead, or that it is not saved. It is
 * empty if nothing failed. */
remat_status training_save(remat_context *context, const remat_trainer *trainer, const training_target *target,
                           char message[TRAINING_SAVE_MESSAGE]);

#endif
