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
 *
 * where p = t / (end - w), at most 1, and `end` is decay_steps or, where that is 0, total_steps. */
double optimizer_rate(const optimizer_settings *settings, uint64_t step, uint64_t total_steps);

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
