/* Plans for batches that are shorter than the rows of the data.
 *
 * Samples of a language model have different lengths, and a row has room for the longest. Behind the last label of a sample nothing is
 * learned, and no token before sees what comes there. So a micro-batch whose samples are all short runs as a network of shorter rows:
 *
 *     classes = 4, rows of 8      tokens   a b c . . . . .      runs with rows of 4
 *                                          d e . . . . . .
 *
 * Every class has its own program and plan within the same budget. All run in one arena, one after the other, with the same weights. */
#ifndef REMAT_TRAIN_LENGTH_CLASSES_H
#define REMAT_TRAIN_LENGTH_CLASSES_H

#include <remat/train.h>

#include "plan/graph/graph_plan.h"
#include "train/executor.h"

typedef struct length_class {
    uint64_t length;
    remat_network *network;
    remat_program *program;
    graph_plan *plan;
    remat_executor *executor;
} length_class;

/* The networks and programs of all classes but the longest, which is the trainer's own. REMAT_INVALID: the model is none of a
 * folder, or there is something that does not go with classes. */
remat_status length_classes_build(remat_trainer *trainer);
remat_status length_classes_plan(remat_trainer *trainer);
remat_status length_classes_start(remat_trainer *trainer);
void length_classes_stop(remat_trainer *trainer);    /* the executors go, */
void length_classes_release(remat_trainer *trainer); /* and all the rest */

bool trainer_has_classes(const remat_trainer *trainer);
/* The largest arena of a class, and not less than `bytes`. */
uint64_t length_classes_arena(const remat_trainer *trainer, uint64_t bytes);
/* What the tables of the executors will take. */
remat_status length_classes_measure(remat_trainer *trainer, uint64_t *bytes);

/* The class of the batch that was filled last; NULL: the whole length. */
const length_class *length_classes_choose(const remat_trainer *trainer);

#endif
