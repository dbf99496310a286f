/* What the two types of cross entropy share. */
#ifndef REMAT_LAYERS_CROSS_ENTROPY_H
#define REMAT_LAYERS_CROSS_ENTROPY_H

#include "layers/layer_resolve.h"

extern const layer_type layer_type_cross_entropy;

enum { MEAN_OF_ROWS, MEAN_OF_LABELS };
extern const char *const cross_entropy_means[];

typedef struct cross_entropy_options {
    double smoothing;
    property_numbers weights; /* of the classes; empty: all are 1 */
    uint32_t mean;            /* MEAN_OF_ROWS: what the sum is divided by */
} cross_entropy_options;

/* The properties, for a field `name` of this type in an options struct. */
#define CROSS_ENTROPY_PROPERTIES(options, name)                                                \
    {"label_smoothing",                                                                        \
     PROPERTY_NUMBER,                                                                          \
     offsetof(options, name.smoothing),                                                        \
     "0",                                                                                      \
     0,                                                                                        \
     1,                                                                                        \
     NULL,                                                                                     \
     "the share of the label that is given to all classes alike"},                             \
        {"mean",                                                                               \
         PROPERTY_CHOICE,                                                                      \
         offsetof(options, name.mean),                                                         \
         "rows",                                                                               \
         0,                                                                                    \
         0,                                                                                    \
         cross_entropy_means,                                                                  \
         "over all rows, or over the labels of a step that are not negative"},                 \
    {                                                                                          \
        "class_weights", PROPERTY_NUMBERS, offsetof(options, name.weights), "", 0, 1e30, NULL, \
            "the weight of a row, for each class; the mean is over the number of rows"         \
    }

/* Rows that are computed at a time. Sums over rows may be split there without changing bits. */
enum { CROSS_ENTROPY_ROWS = OPERATION_K_BLOCK };

/* Sets the fields that both types share. There is one label for every row of input 0, c*h in a sample; any shape with
 * that many values is accepted. */
remat_status cross_entropy_resolve(remat_context *context, layer_node *layer, const cross_entropy_options *options,
                                   uint64_t classes);

/* Records the loss of some rows of logits and, where wanted, its gradient, which may overlap the logits. */
remat_status cross_entropy_record(const layer_node *layer, const cross_entropy_options *options, const layer_call *call,
                                  tensor_ref logits, tensor_ref labels, uint64_t rows, uint64_t classes,
                                  tensor_ref gradient);

/* Call it after the last rows: adds the mean to the loss. */
remat_status cross_entropy_finish(const layer_node *layer, const cross_entropy_options *options,
                                  const layer_call *call);

/* How many labels are not negative, at most UINT32_MAX. */
uint32_t labels_count(const int32_t *labels, uint64_t count);

/* Whether a loss is divided by the labels that are not negative; false for other types. */
bool cross_entropy_counts_labels(const layer_node *layer);

#endif
