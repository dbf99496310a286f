/* What an optimizer does with a gradient: its learning rate at a step, what it keeps for each weight, and the update.
 * The formulae are PyTorch's. */
#ifndef REMAT_TRAIN_OPTIMIZER_H
#define REMAT_TRAIN_OPTIMIZER_H

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

/* Updates `count` weights in place. `step` is the number of this update, from 1; `scale` multiplies the gradient
 * first (clipping); weight decay counts only where `decay_applies`. moments[i] is NULL from optimizer_moments() on. */
void optimizer_apply(const kernel_table *kernels, const kernel_run *run, const optimizer_settings *settings,
                     uint64_t step, double rate, double scale, bool decay_applies, size_t count, const real *gradient,
                     real *weight, real *const moments[OPTIMIZER_MAX_MOMENTS]);

#endif
