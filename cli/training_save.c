#include "training_save.h"
#include "shown.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

remat_status training_save_check(const remat_trainer *trainer, const training_target *target)
{
    if (!target->path)
        return REMAT_OK;
    return target->is_folder ? remat_trainer_check_save_folder(trainer, target->path, target->merge)
                             : remat_trainer_check_save(trainer, target->path, target->with_state);
}

static remat_status save_to(const remat_trainer *trainer, const training_target *target, const char *path)
{
    return target->is_folder ? remat_trainer_save_folder(trainer, path, target->merge)
                             : remat_trainer_save(trainer, path, target->with_state);
}

/* The last part of a path, without a slash at its end; at most 200 letters, because a name has at most 255. */
static void last_part(const char *path, char name[201])
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(name, 201, "%.*s", (int)(end - begin), path + begin);
}

/* A name that nothing has: where process ids repeat, as in containers, the first may hold an earlier training. */
static bool find_free(const char *folder, const char *name, char *path, size_t room)
{
    enum { MOST = 1000 };
    for (int number = 1; number < MOST; number++) {
        char mark[24] = "";
        struct stat info;
        if (number > 1)
            snprintf(mark, sizeof mark, "%d-", number);
        if (snprintf(path, room, "%s/remat-%ld-%s%s", folder, (long)getpid(), mark, name) >= (int)room)
            return false;
        if (lstat(path, &info) != 0)
            return true;
    }
    return false;
}

remat_status training_save(remat_context *context, const remat_trainer *trainer, const training_target *target,
                           char message[TRAINING_SAVE_MESSAGE])
{
    remat_status status = save_to(trainer, target, target->path);
    message[0] = 0;
    if (status == REMAT_OK)
        return status;
    size_t used = (size_t)snprintf(message, TRAINING_SAVE_MESSAGE, "remat: %.2000s\n", remat_context_message(context));
    const char *temporary = getenv("TMPDIR"), *home = getenv("HOME");
    const char *const folders[] = {".", temporary ? temporary : "/tmp", home ? home : "/", "/dev/shm"};
    char name[201];
    last_part(target->path, name);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char other[4096];
        if (!find_free(folders[i], name, other, sizeof other))
            continue;
        if (save_to(trainer, target, other) == REMAT_OK) {
            snprintf(message + used, TRAINING_SAVE_MESSAGE - used, "remat: the training was saved to %s instead\n%s",
                     shown(other), i == 3 ? "remat: that is in memory: copy it before the machine is restarted\n" : "");
            return status;
        }
        if (target->is_folder)
            rmdir(other); /* where nothing could be written to it */
    }
    snprintf(message + used, TRAINING_SAVE_MESSAGE - used,
             "remat: the training is not saved: %s, %s, %s and %s cannot be written either\n", folders[0], folders[1],
             folders[2], folders[3]);
    return status;
}
