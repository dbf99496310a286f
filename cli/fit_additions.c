#include "fit_additions.h"

#include "model_file.h"
#include "run_text.h"
#include "waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

fit_ends fit_ends_of(const remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    return (fit_ends){figures.min_budget_bytes, run_text_keep_all(&figures)};
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
    wanted.plan_quickly = question->clips || question->accumulates; /* what they add need not be known to the byte */
    if (status == REMAT_OK)
        status = model_file_plan_freely(model, &wanted, &trainer);
    if (status != REMAT_OK)
        return status;
    question->ends = fit_ends_of(trainer);
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

/* Without a child, this process answers. On a GPU there is none: each would take some memory of it for itself. */
static void start_child(remat_model *model, const remat_train_options *options, fit_question *question)
{
    int ends[2];
    if ((options->device && strcmp(options->device, "cpu") != 0) || pipe(ends) != 0)
        return;
    question->child = fork();
    if (question->child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        close(ends[0]);
        /* Warnings come from this program's own plan, once. What fails here is done there, and said. */
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0 || answer(model, options, question) != REMAT_OK)
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
    do
        count = read(question->from_child, &ends, sizeof ends);
    while (count < 0 && errno == EINTR);
    close(question->from_child);
    while (waitpid(question->child, NULL, 0) < 0 && errno == EINTR)
        ;
    question->child = 0;
    if (count == (ssize_t)sizeof ends)
        question->ends = ends;
    return count == (ssize_t)sizeof ends;
}

static void stop_child(fit_question *question)
{
    if (!question->child)
        return;
    kill(question->child, SIGKILL);
    end_child(question);
}

void fit_search_begin(fit_search *search, remat_model *model, const remat_train_options *options)
{
    *search = (fit_search){.questions = {[FIT_CLIPPING] = {.clips = true}, [FIT_ACCUMULATING] = {.accumulates = true}}};
    start_child(model, options, &search->questions[FIT_CLIPPING]);
    start_child(model, options, &search->questions[FIT_ACCUMULATING]);
}

void fit_search_abandon(fit_search *search)
{
    for (size_t i = 0; i < FIT_QUESTIONS; i++)
        stop_child(&search->questions[i]);
}

/* What a setting adds to both ends: it may take nothing, but never gives. */
static fit_ends added(fit_ends with, fit_ends without)
{
    return (fit_ends){with.least > without.least ? with.least - without.least : 0,
                      with.keep_all > without.keep_all ? with.keep_all - without.keep_all : 0};
}

/* The first question has no process: it is answered here, while the others run. */
remat_status fit_search_end(fit_search *search, remat_model *model, const remat_train_options *options, fit_ends own,
                            bool clips, bool accumulates, fit_additions *found)
{
    remat_status status = REMAT_OK;
    waiting_for("planning with clip_norm and accumulate");
    for (size_t i = 0; i < FIT_QUESTIONS && status == REMAT_OK; i++) {
        fit_question *question = &search->questions[i];
        if (question->clips == clips && question->accumulates == accumulates) {
            stop_child(question);
            question->ends = own;
        } else if (!question->child || !end_child(question)) {
            status = answer(model, options, question);
        }
    }
    waiting_end();
    const fit_question *questions = search->questions;
    found->clipping = added(questions[FIT_CLIPPING].ends, questions[FIT_PLAIN].ends);
    found->accumulating = added(questions[FIT_ACCUMULATING].ends, questions[FIT_PLAIN].ends);
    return status;
}
