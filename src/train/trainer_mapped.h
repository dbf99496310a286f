/* Frozen weights that are not copied but mapped from the files of the model's folder: with frozen=keep, those that a file has as the
 * network holds them. Processes on one machine share them.
 *
 * A page of such a weight takes memory once it was read. Where the budget holds all of them, they stay. Where it does not, the weights
 * that an action read are dropped after it, except for those that the rest of the budget holds; these are kept:
 *
 *     | all mapped weights                  |            they stay
 *     | kept ones | the most that one action reads |     the others are dropped
 *
 * Both sums count as weights in the plan. The arena needs no part of them, because it does not shrink when a tensor dies: a weight can
 * never use its bytes. */
#ifndef REMAT_TRAIN_TRAINER_MAPPED_H
#define REMAT_TRAIN_TRAINER_MAPPED_H

#include <remat/train.h>

#include "data/tensor_map.h"
#include "train/executor.h"

typedef struct mapped_weight {
    bool is_mapped;
    bool is_kept; /* where others are dropped */
    tensor_map map;
} mapped_weight;

typedef struct mapped_weights {
    safetensors *file; /* while weights are mapped */
    bool drops;
    mapped_weight *weights; /* of each parameter of the network */
} mapped_weights;

/* Which weights are mapped. A folder whose weights are not there yet is taken to have them in the type that its config.json says. Before
 * weights are placed; without mapped weights, trainer->mapped stays NULL and the functions below do nothing. */
remat_status trainer_find_mapped(remat_trainer *trainer);
bool trainer_maps(const remat_trainer *trainer); /* whether any could be */
void trainer_release_mapped(remat_trainer *trainer);
bool trainer_is_mapped(const remat_trainer *trainer, uint32_t parameter);

/* Places those that are copied: the network's places, without gaps. */
remat_status trainer_place_copied(remat_trainer *trainer);

/* ---- the plan ---- */

uint64_t trainer_mapped_bytes(const remat_trainer *trainer);       /* that count as weights */
uint64_t trainer_least_mapped_bytes(const remat_trainer *trainer); /* if as many as possible are dropped */
uint64_t trainer_file_bytes(const remat_trainer *trainer);         /* of all of them */
/* From now on they are dropped. False: there are none, or they were before. */
bool trainer_drop_mapped(remat_trainer *trainer);
/* Keeps what the rest of the budget holds: the largest first. When all plans are made. */
remat_status trainer_keep_mapped(remat_trainer *trainer);

/* ---- the run ---- */

/* Maps them. REMAT_BAD_INPUT: a file does not have them as planned. REMAT_IO. */
remat_status trainer_map_weights(remat_trainer *trainer);
/* REMAT_IO: a file has been changed since. */
remat_status trainer_check_mapped(const remat_trainer *trainer);
bool trainer_drops_weights(const remat_trainer *trainer);
/* For executor_weights, where they are dropped. */
void trainer_leave_weights(void *trainer, const remat_program *program, uint32_t action);
bool trainer_want_weights(void *trainer, const remat_program *program, uint32_t action);
/* After a weight was read outside of a run. */
void trainer_leave_weight(const remat_trainer *trainer, uint32_t parameter);
/* Whether a tensor of another file has the values of a mapped weight. REMAT_INVALID: it has others. */
remat_status trainer_compare_mapped(const remat_trainer *trainer, const safetensors *file,
                                    const safetensors_tensor *tensor, uint32_t parameter);

#endif
