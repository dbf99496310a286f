#ifndef REMAT_TRAIN_EVALUATION_OBJECT_H
#define REMAT_TRAIN_EVALUATION_OBJECT_H

#include <remat/evaluation.h>

#include "data/data_encoding.h"

enum { EVALUATION_MOST_CONFUSED = 1000 }; /* classes of a confusion matrix */

typedef struct class_counts {
    uint64_t rows, predicted, correct;
} class_counts;

/* Of one value of a sample. */
typedef struct value_sums {
    double mean, squares; /* of the labels, by Welford's method */
    double errors;        /* squared */
} value_sums;

/* Of one target of a binary cross entropy. */
typedef struct target_counts {
    uint64_t positives, predicted, correct, right;
} target_counts;

struct remat_evaluation {
    remat_context *context;
    uint64_t samples, rows, classes;
    double loss;     /* the sum of the losses of `losses` samples, or labels */
    uint64_t losses; /* what the loss is a mean of */
    /* Of classes. */
    uint64_t correct, among_five;
    double surprise; /* the sum of -log(probability of the label) */
    class_counts *counts;
    uint64_t *confusion; /* classes x classes; NULL: too many */
    /* Of numbers. */
    double absolute; /* the sum of absolute errors */
    value_sums *values;
    uint64_t value_count; /* of a sample */
    /* Of the targets of a binary cross entropy. */
    target_counts *targets;
    uint64_t target_count; /* of a sample */
    data_encoding encoding;
};

#endif
