/* What `remat train` prints, besides its progress. */
#ifndef REMAT_CLI_TRAIN_TEXT_H
#define REMAT_CLI_TRAIN_TEXT_H

#include "model_options.h"
#include "progress.h"

typedef struct train_command {
    model_options given;
    const char *save, *save_best, *resume, *log, *trace;
    const char *save_folder; /* instead of `save`, in Hugging Face's layout */
    bool merge;
    char best[4096]; /* where the best weights go: save_best, or a name made from `save`; "": nowhere */
    int argc;        /* as the command was given, for the one that goes on */
    char *const *argv;
    uint64_t save_every; /* steps; 0: only at the end */
    bool from_scratch;   /* the weights of a folder, if it has some, are left alone */
    bool quiet, weights_only;
    bool hard;                 /* the system keeps the process within the budget */
    uint64_t limit;            /* with `hard`: the bytes that the process may have; 0 before it is set */
    uint64_t most_batch;       /* with --batch auto: what the budget allows, whatever the data has; 0: not known */
    remat_batch_choice choice; /* with --batch auto */
    progress_display progress;
    remat_communicator *ranks;
    uint64_t rank_timeout; /* seconds; 0: the default */
} train_command;

/* Which batch was chosen, and why it is not larger: it would be slower, the budget, or there are no more samples. */
void train_text_batch(const train_command *command, const remat_trainer_figures *figures);
/* What is going to happen, before it does. */
void train_text_plan(const train_command *command, const remat_trainer *trainer);
/* What the run came to, and where its weights are. `saved`: nothing failed while they were saved. */
void train_text_end(const train_command *command, const remat_trainer *trainer, const remat_run_result *result,
                    bool saved);
/* The same for --json, to stdout. */
void train_text_json(const train_command *command, const remat_trainer *trainer, const remat_run_result *result);

#endif
