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

/* What an optimizer keeps of a parameter: up to four tensors. They start at zero bytes. */
enum {
    STATE_FIRST,         /* the mean of gradients; of adafactor: mean squares of rows, or the squares of a vector */
    STATE_SECOND,        /* the mean of their squares; of adafactor: mean squares of columns */
    STATE_FIRST_SCALES,  /* with state = int8 */
    STATE_SECOND_SCALES, /* likewise */
    OPTIMIZER_STATES
};

typedef struct optimizer_state {
    remat_dtype dtype;
    uint32_t rank;
    uint64_t dims[4];
    uint64_t values, bytes; /* 0: there is no such tensor */
} optimizer_state;

/* The tensors for a parameter of that shape and so many values. */
void optimizer_find_states(const optimizer_settings *settings, const layer_parameter *about, uint64_t values,
                           optimizer_state states[OPTIMIZER_STATES]);

/* Means kept for each trained value: 0 for plain sgd and adafactor, 1 for sgd with momentum and lion, 2 for adam and
 * adamw. */
uint32_t optimizer_moments(const optimizer_settings *settings);

/* Sets the numbers that change with each update: the rate, adam's corrections and adafactor's shares. `update` counts from
 * 1. */
void optimizer_set_step(const optimizer_settings *settings, uint64_t update, double rate, step_block *block);

/* The update of one parameter. */
typedef struct optimizer_update {
    const layer_parameter *about;
    uint64_t values;
    uint64_t number; /* of the parameter, for messages and random numbers */
    uint64_t offset; /* of the first of these values in the parameter */
    tensor_ref step, gradient, weight, states[OPTIMIZER_STATES];
} optimizer_update;

/* Records the update of a parameter in place. Weight decay applies only where the parameter says so. */
remat_status optimizer_record(const optimizer_settings *settings, recording *calls, const optimizer_update *update);

#endif
