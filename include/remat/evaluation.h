/* Remat: how good trained weights are.
 *
 *     remat_evaluation *evaluation;
 *     remat_evaluate(model, "weights.safetensors", NULL, &evaluation);
 *     remat_evaluation_figures figures;
 *     remat_evaluation_get_figures(evaluation, &figures);
 *     printf("%f\n", figures.loss);
 *     remat_evaluation_destroy(evaluation);
 *
 * Every sample counts once, also those of an incomplete last batch. */
#ifndef REMAT_EVALUATION_H
#define REMAT_EVALUATION_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_evaluation remat_evaluation;

/* Runs the weights of a file on the validation samples of the model's dataset, or on all samples of options->data_path. Of
 * the options it uses kernels, threads, batch_size, seed and those about samples; NULL: the defaults. The model must
 * outlive the evaluation. On failure *evaluation is NULL. REMAT_INVALID: there are no samples, or the model has no loss.
 * REMAT_BAD_INPUT, REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_evaluate(remat_model *model, const char *weights_path, const remat_train_options *options,
                            remat_evaluation **evaluation);
void remat_evaluation_destroy(remat_evaluation *evaluation);

/* A figure that does not apply is NaN. */
typedef struct remat_evaluation_figures {
    uint64_t samples;
    uint64_t rows;    /* predictions with a label: samples, or tokens; rows with a negative label are left out */
    uint64_t classes; /* 0: the loss is not over classes */
    double loss;      /* the mean over the samples */
    /* Of classes. */
    double accuracy;   /* the share of rows whose largest logit is that of the label; with targets: of right answers */
    double top5;       /* the share of rows whose label is among the five largest; with more than five classes */
    double perplexity; /* exp of the mean of -log(probability of the label) over the rows */
    /* Of numbers. */
    double mean_absolute_error;
    double r2;        /* 1 - squared errors / variance of the labels; the mean over the values of a sample that vary */
    uint64_t targets; /* values of a sample, with a binary cross entropy; 0: another loss */
} remat_evaluation_figures;
void remat_evaluation_get_figures_sized(const remat_evaluation *evaluation, remat_evaluation_figures *figures,
                                        size_t figures_size);
static inline void remat_evaluation_get_figures(const remat_evaluation *evaluation, remat_evaluation_figures *figures)
{
    remat_evaluation_get_figures_sized(evaluation, figures, sizeof *figures);
}

/* One class. Its name belongs to the evaluation; NULL: its name is its number. */
typedef struct remat_class_figures {
    const char *name;
    uint64_t rows;      /* with this label */
    uint64_t predicted; /* rows for which this class was predicted */
    uint64_t correct;   /* both */
    double precision;   /* correct / predicted; NaN if it was never predicted */
    double recall;      /* correct / rows; NaN if no row has this label */
} remat_class_figures;
/* REMAT_INVALID past the last class. */
remat_status remat_evaluation_get_class_sized(const remat_evaluation *evaluation, uint64_t position,
                                              remat_class_figures *figures, size_t figures_size);
static inline remat_status remat_evaluation_get_class(const remat_evaluation *evaluation, uint64_t position,
                                                      remat_class_figures *figures)
{
    return remat_evaluation_get_class_sized(evaluation, position, figures, sizeof *figures);
}

/* The confusion matrix: how many rows with the label `label` were predicted as `predicted`. 0 past the last class, and
 * with more than 1000 classes, which have no matrix. */
uint64_t remat_evaluation_confusion(const remat_evaluation *evaluation, uint64_t label, uint64_t predicted);

/* One target of a binary cross entropy. The answer is yes where its probability is above 0.5, and the label is yes from
 * 0.5 on. The name is that of the label's column and belongs to the evaluation; NULL: its name is its number. */
typedef struct remat_target_figures {
    const char *name;
    uint64_t rows;      /* samples */
    uint64_t positives; /* whose label is yes */
    uint64_t predicted; /* whose answer is yes */
    uint64_t correct;   /* both */
    double accuracy;    /* the share of right answers */
    double precision;   /* correct / predicted; NaN if the answer was never yes */
    double recall;      /* correct / positives; NaN if the label is never yes */
    double f1;          /* 2 x correct / (predicted + positives); NaN if both are 0 */
} remat_target_figures;
/* REMAT_INVALID past the last target. */
remat_status remat_evaluation_get_target_sized(const remat_evaluation *evaluation, uint64_t position,
                                               remat_target_figures *figures, size_t figures_size);
static inline remat_status remat_evaluation_get_target(const remat_evaluation *evaluation, uint64_t position,
                                                       remat_target_figures *figures)
{
    return remat_evaluation_get_target_sized(evaluation, position, figures, sizeof *figures);
}

/* Writes all of it, for people or as one line of JSON (docs/formats.md). `save` replaces a file only when everything was
 * written. REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_evaluation_write(const remat_evaluation *evaluation, FILE *stream, bool json);
remat_status remat_evaluation_save(const remat_evaluation *evaluation, const char *path, bool json);

#ifdef __cplusplus
}
#endif
#endif
