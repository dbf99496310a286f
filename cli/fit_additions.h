/* What clipping and accumulation add to what a model takes. */
#ifndef REMAT_CLI_FIT_ADDITIONS_H
#define REMAT_CLI_FIT_ADDITIONS_H

#include <sys/types.h>

#include <remat/train.h>

/* Bytes of the smallest budget, and with nothing recomputed. */
typedef struct fit_ends {
    uint64_t least, keep_all;
} fit_ends;

/* Those that a trainer has. */
fit_ends fit_ends_of(const remat_trainer *trainer);

typedef struct fit_additions {
    fit_ends clipping, accumulating;
} fit_additions;

/* A plan of the model with or without the settings. */
typedef struct fit_question {
    bool clips, accumulates;
    fit_ends ends;
    pid_t child; /* the process that looks for it; 0: none */
    int from_child;
} fit_question;

enum { FIT_PLAIN, FIT_CLIPPING, FIT_ACCUMULATING, FIT_QUESTIONS };
typedef struct fit_search {
    fit_question questions[FIT_QUESTIONS];
} fit_search;

/* Begins to look for what clipping and accumulation add. Such plans take a while for a deep model, so processes of their own make
 * them: each has a copy of the model, whose settings it changes. */
void fit_search_begin(fit_search *search, remat_model *model, const remat_train_options *options);

/* `own`: the ends of the model as it is, with clipping, accumulation, both or neither. Changes these settings of the model. */
remat_status fit_search_end(fit_search *search, remat_model *model, const remat_train_options *options, fit_ends own,
                            bool clips, bool accumulates, fit_additions *found);

/* Ends all processes. */
void fit_search_abandon(fit_search *search);

#endif
