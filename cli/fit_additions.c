#include "fit_additions.h"

#include "model_file.h"
#include "waiting.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* A plan of the model with or without the settings. It takes a second for a deep model, so several are made at once, each by a
 * process of its own: a child has a copy of the model, whose settings it may change. */
typedef struct fit_question {
    bool clips, accumulates;
    fit_ends ends;
    pid_t child; /* 0: none */
    int from_child;
} fit_question;
enum { PLAIN, CLIPPING, ACCUMULATING, QUESTIONS };

fit_ends fit_ends_of(const remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    return (fit_ends){figures.min_budget_bytes,
                      figures.total_bytes - figures.arena_bytes + figures.keep_all_arena_bytes};
}

/* The ends are the same for every norm, and for every number of micro-batches from two on. */
static remat_status answer(remat_model *model, const remat_train_options *options, fit_question *question)
{
    remat_train_options wanted = *options;
    remat_trainer *trainer;
    remat_status status =
        remat_model_set(model, REMAT_PROPERTIES(question->clips ? "clip_norm=1" : "clip_norm=0",
                                                question->accumulates ? "accumulate=2" : "accumulate=1"));
    wanted.strategy = "optimal";
    if (status == REMAT_OK)
        status = model_file_plan_freely(model, &wanted, &trainer);
    if (status != REMAT_OK)
        return status;
    question->ends = fit_ends_of(trainer);
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

/* Without a child, this process answers. */
static void start_child(remat_model *model, const remat_train_options *options, fit_question *question)
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    question->child = fork();
    if (question->child == 0) {
        close(ends[0]);
        if (answer(model, options, question) != REMAT_OK)
            _exit(1);
        _exit(write(ends[1], &question->ends, sizeof question->ends) != (ssize_t)sizeof question->ends);
    }
    close(ends[1]);
    question->from_child = ends[0];
    if (question->child < 0) {
        question->child = 0;
        close(ends[0]);
    }
}

/* Whether the child has answered. It is gone then, in any case. */
static bool end_child(fit_question *question)
{
    fit_ends ends;
    ssize_t count;
    int status;
    do
        count = read(question->from_child, &ends, sizeof ends);
    while (count < 0 && errno == EINTR);
    close(question->from_child);
    while (waitpid(question->child, &status, 0) < 0 && errno == EINTR)
        ;
    question->child = 0;
    if (count == (ssize_t)sizeof ends)
        question->ends = ends;
    return count == (ssize_t)sizeof ends;
}

/* What a setting adds to both ends: it may take nothing, but never gives. */
static fit_ends added(fit_ends with, fit_ends without)
{
    return (fit_ends){with.least > without.least ? with.least - without.least : 0,
                      with.keep_all > without.keep_all ? with.keep_all - without.keep_all : 0};
}

remat_status fit_additions_find(remat_model *model, const remat_train_options *options, fit_ends own, bool clips,
                                bool accumulates, fit_additions *found)
{
    fit_question questions[QUESTIONS] = {[CLIPPING] = {.clips = true}, [ACCUMULATING] = {.accumulates = true}};
    fit_question *left[QUESTIONS];
    size_t count = 0;
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < QUESTIONS; i++)
        if (questions[i].clips == clips && questions[i].accumulates == accumulates)
            questions[i].ends = own;
        else
            left[count++] = &questions[i];
    for (size_t i = 1; i < count; i++)
        start_child(model, options, left[i]);
    waiting_for("planning with clip_norm and accumulate");
    for (size_t i = 0; i < count; i++) {
        const bool has_child = left[i]->child != 0;
        if (!(has_child && end_child(left[i])) && status == REMAT_OK)
            status = answer(model, options, left[i]);
    }
    waiting_end();
    found->clipping = added(questions[CLIPPING].ends, questions[PLAIN].ends);
    found->accumulating = added(questions[ACCUMULATING].ends, questions[PLAIN].ends);
    return status;
}
