/* Which key of a config.json says how large a tensor is, for messages about weights that do not fit it. */
#ifndef REMAT_TRAIN_CONFIG_KEYS_H
#define REMAT_TRAIN_CONFIG_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* For a parameter and a dimension as they are in our model; NULL: none that is known. */
const char *config_key_of(const char *parameter, uint32_t dimension);

/* What to look at if the weights have a tensor that the model of config.json lacks, or the other way round. */
const char *config_cause_of(const char *tensor);

/* Whether a tensor of the file may be left over: masks and tables that other programs saved beside the weights, and the head of a
 * model whose head is tied. */
bool config_may_ignore(const char *tensor);

#endif
