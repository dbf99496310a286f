/* Optimizers: the learning rate of a step, the moments of each weight, and the update. The formulas are those of
 * PyTorch. */
#ifndef REMAT_TRAIN_OPTIMIZER_H
#define REMAT_TRAIN_OPTIMIZER_H

#include "backend/recording.h"
#include "model/settings.h"

/* The learning rate of a step, which counts from 0. With R the learning rate, w the steps of warm-up and t = step - w:
 *
 *     warm-up (step < w)   R * (step + 1) / w
 *     constant             R
 *     step                 R * gamma^floor(t / step_size), not below min_rate
 *     linear               R + (min_rate - R) * p
 *     cosine               min_rate + (R - min_rate) * (1 + cos(pi * p)) / 2
 *     one_cycle            by half a cosine from R / div_factor up to R, over rise * end steps, and down to
 *                          R / div_factor / final_div_factor
 *     plateau              R * gamma^cuts, not below min_rate
 *
 * where p = t / (end - w), at most 1, and `end` is decay_steps or, where that is 0, total_steps. `cuts` counts how often
 * the losses of validations stopped to fall. */
double optimizer_rate(const optimizer_settings *settings, uint64_t step, uint64_t total_steps, uint64_t cuts);

/* What the schedule plateau knows of the validations so far. */
typedef struct rate_plateau {
    double best;    /* INFINITY at the start */
    uint64_t stale; /* validations since then */
    uint64_t cuts;
} rate_plateau;

/* Counts a validation: after more than `patience` without improvement the rate is cut. */
void optimizer_note_validation(const optimizer_settings *settings, double loss, rate_plateau *plateau);

enum { OPTIMIZER_MAX_MOMENTS = 2 };

/* Values kept for each trained value: 0 for plain sgd, 1 with momentum, 2 for adam and adamw. They start at zero. */
uint32_t optimizer_moments(const optimizer_settings *settings);

/* Sets the numbers that change with each update: the rate and adam's corrections. `update` counts from 1. */
void optimizer_set_step(const optimizer_settings *settings, uint64_t update, double rate, step_block *block);

/* Records the update of `count` weights in place. Weight decay applies only if `decay_applies`. There are as many
 * moments as optimizer_moments() says. `number` is that of the parameter, for messages. */
remat_status optimizer_record(const optimizer_settings *settings, recording *calls, tensor_ref step, uint64_t number,
                              bool decay_applies, size_t count, tensor_ref gradient, tensor_ref weight,
                              const tensor_ref moments[OPTIMIZER_MAX_MOMENTS]);

#endif
