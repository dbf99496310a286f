/* Which samples of a set are for training and which for validation. */
#ifndef REMAT_DATA_DATA_SPLIT_H
#define REMAT_DATA_DATA_SPLIT_H

#include "data/data_set.h"

typedef struct data_split {
    uint64_t samples, training; /* in all, and of these for training; the others are for validation */
    uint32_t *order;            /* of samples: those for training, then the others, each in their order. NULL: the last
                                 * samples are for validation */
} data_split;

/* Splits a set. `how` is one of SPLIT_...; SPLIT_AUTO is decided by the set. REMAT_NO_MEMORY, and what reading classes
 * returns. */
remat_status data_split_make(data_set *set, double share, uint32_t how, uint64_t seed, data_split *split);
void data_split_end(data_split *split, remat_context *context);

/* The number in the set of a sample of a part. */
uint64_t data_split_sample(const data_split *split, data_part part, uint64_t sample);

/* Warns about classes that only training has, or only validation. `validation` is the set of the second part, which may
 * be the same as that of the first. `names` may have none. */
remat_status data_split_warn(data_set *training, data_set *validation, const data_split *split, const name_list *names);

#endif
