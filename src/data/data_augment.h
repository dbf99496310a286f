/* Random changes of images for training. They depend on the seed and on a sample's place in the training alone. */
#ifndef REMAT_DATA_DATA_AUGMENT_H
#define REMAT_DATA_DATA_AUGMENT_H

#include "data/data_set.h"

typedef struct data_augment {
    bool is_on;
    uint32_t flip;
    uint64_t shift, cutout;
    double crop;
    uint64_t room; /* values of the largest image */
    float *copy;   /* of an image; room for it */
} data_augment;

/* What the settings ask for; NULL: nothing. */
void data_augment_begin(data_augment *augment, const dataset_settings *settings, const data_needs *needs);
/* REMAT_INVALID if something is asked for and no input is an image: real numbers with a height and a width above 1. */
remat_status data_augment_allocate(data_augment *augment, remat_context *context);
void data_augment_end(data_augment *augment, remat_context *context);

/* Changes the images of one sample. All inputs of a sample are changed in the same way. */
void data_augment_sample(const data_augment *augment, const data_needs *needs, const data_draw *draw,
                         void *const *inputs);

#endif
