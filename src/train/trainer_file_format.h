/* Weights and state on disk. Parameters have their names in the model. Moments have a prefix that no layer name can
 * have, so that other programs can tell them apart:
 *
 *     fc1.weight, fc1.bias, ...                weights and running statistics; with master = false, matrices in bf16
 *     optimizer/0/fc1.weight, ...              the state of the optimizer: first moments
 *     optimizer/1/fc1.weight, ...              second moments
 *     optimizer/0.scales/fc1.weight, ...       and the scales of moments in 8 bits
 *     metadata: format, step, micro_step, ...  where the training stood
 *     metadata: dataset                        how the data became numbers (data/data_encoding.h)
 *
 * Moments in 8 bits say in which codes they are: 2 is base/moment_codes.h. Builds before release 0.2 had other ones and did not
 * say so.
 *
 * Version 1, of release 0.1, had no checksums. */
#ifndef REMAT_TRAIN_TRAINER_FILE_FORMAT_H
#define REMAT_TRAIN_TRAINER_FILE_FORMAT_H

#include "train/trainer_object.h"

#define WEIGHTS_FORMAT         "remat-weights"
#define DATASET_KEY            "dataset"
#define STATE_KEY              "state"
#define CODES_KEY              "codes"
#define CODES_OF_MOMENTS       "2"
#define MASTER_KEY             "master"
#define VERSION_OF_0_1         "1"
#define VERSION_WITH_CHECKSUMS "2"

static const char *const optimizer_names[] = {"sgd", "adam", "adamw", "lion", "adafactor"};
static const char *const state_types[] = {"fp32", "bf16", "int8"};
static const char *const state_names[OPTIMIZER_STATES] = {"0", "1", "0.scales", "1.scales"};

/* How the trainer's data became numbers, as text; NULL where there is nothing to say. remat_text_release frees it. */
remat_status trainer_write_encoding(const remat_trainer *trainer, char **text);

#endif
