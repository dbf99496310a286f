/* Rows of samples for fine-tuning (remat/tokenizer.h) as a source of data: a generator of samples. The first input gets the
 * ids, a second one the positions, a third one the segments; labels that are not learned are -1. */
#ifndef REMAT_DATA_DATA_SAMPLES_H
#define REMAT_DATA_DATA_SAMPLES_H

#include <remat/tokenizer.h>

#include "data/data.h"

typedef struct data_samples {
    const remat_samples *samples;
    uint64_t length;    /* of a row, as the samples were loaded with */
    size_t input_count; /* 1 to 3 */
} data_samples;

/* For data_options. What it reads from must outlive the source. */
data_generator data_samples_generator(data_samples *from);

#endif
