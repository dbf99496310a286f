#include "training_save.h"
#include "shown.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

remat_status training_save(remat_context *context, const remat_trainer *trainer, const char *path, bool with_state,
                           char message[TRAINING_SAVE_MESSAGE])
{
    remat_status status = remat_trainer_save(trainer, path, with_state);
    message[0] = 0;
    if (status == REMAT_OK)
        return status;
    size_t used = (size_t)snprintf(message, TRAINING_SAVE_MESSAGE, "remat: %.2000s\n", remat_context_message(context));
    const char *slash = strrchr(path, '/'), *temporary = getenv("TMPDIR"), *home = getenv("HOME");
    const char *const folders[] = {".", temporary ? temporary : "/tmp", home ? home : "/", "/dev/shm"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char other[4096];
        int length = snprintf(other, sizeof other, "%s/remat-%ld-%.200s", folders[i], (long)getpid(),
                              slash ? slash + 1 : path); /* the name of a file has at most 255 letters */
        if (length < (int)sizeof other && remat_trainer_save(trainer, other, with_state) == REMAT_OK) {
            snprintf(message + used, TRAINING_SAVE_MESSAGE - used, "remat: the training was saved to %s instead\n%s",
                     shown(other), i == 3 ? "remat: that is in memory: copy it before the machine is restarted\n" : "");
            return status;
        }
    }
    snprintf(message + used, TRAINING_SAVE_MESSAGE - used,
             "remat: the training is not saved: %s, %s, %s and %s cannot be written either\n", folders[0], folders[1],
             folders[2], folders[3]);
    return status;
}
