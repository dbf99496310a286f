/* The best weights of a run. They are kept in a file, so they take no memory of the budget. */
#include "train/trainer_best.h"

#include "base/error.h"

/* As with other saves during a run, a failure is a warning: the file before is still there. */
void trainer_save_best(const remat_trainer *trainer, const char *path, bool with_state, bool *written)
{
    remat_context *context = trainer->context;
    *written = remat_trainer_save(trainer, path, with_state) == REMAT_OK;
    if (!*written)
        remat_warn(context, NULL, "%s; the training goes on", remat_context_message(context));
}

/* A file of an earlier run has the best weights only if it was saved after the right step. */
static bool is_best(const remat_trainer *trainer, const char *path)
{
    uint64_t step = 0;
    return trainer->best_step > 0 && trainer_saved_step(trainer->context, path, &step) && step == trainer->best_step;
}

remat_status trainer_restore_best(remat_trainer *trainer, const char *path, bool with_state, bool written,
                                  bool *restored)
{
    *restored = false;
    if (!written && (!with_state || !is_best(trainer, path))) {
        remat_warn(trainer->context, NULL,
                   "the weights of step %llu, the best, are not in %s; the weights are those of the last step",
                   (unsigned long long)trainer->best_step, path);
        return REMAT_OK;
    }
    /* The numbers of the state go back too. Only the count of steps decides whether a training is over. */
    remat_status status = with_state ? remat_trainer_resume(trainer, path) : remat_trainer_load(trainer, path);
    *restored = status == REMAT_OK;
    return status;
}
