/* The settings that a training was done with, saved with its state: a resumed training says what has changed. */
#ifndef REMAT_TRAIN_TRAINING_SETTINGS_H
#define REMAT_TRAIN_TRAINING_SETTINGS_H

#include "train/trainer_object.h"

/* Writes "learning_rate=0.01, schedule=cosine, ...": those that change how a step is taken, and the number of steps if
 * the learning rate depends on it. The text is cut off where it is too long, which no table of properties is. */
enum { TRAINING_SETTINGS_TEXT = 1024 };
void training_settings_write(const remat_trainer *trainer, char text[TRAINING_SETTINGS_TEXT]);

/* Warns of every setting in `saved`, such a text, that is another now. `path` is for the message. */
void training_settings_compare(const remat_trainer *trainer, const char *path, const char *saved);

#endif
