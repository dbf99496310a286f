#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/moment_codes.h"

/* Half a cosine from one rate to another; p goes from 0 to 1. */
static double swing(double from, double to, double p)
{
    return to + (from - to) * (1 + cos(M_PI * p)) / 2;
}

/* As PyTorch's OneCycleLR. */
static double one_cycle(const optimizer_settings *settings, uint64_t step, uint64_t end)
{
    const double full = settings->learning_rate, start = full / settings->start_divisor;
    const double last = end > 1 ? (double)end - 1 : 1, top = fmax(settings->rise * (double)end - 1, 0);
    const double at = fmin((double)step, last);
    if (at <= top)
        return top > 0 ? swing(start, full, at / top) : full;
    return swing(full, start / settings->end_divisor, (at - top) / (last - top));
}

void optimizer_note_validation(const optimizer_settings *settings, double loss, rate_plateau *plateau)
{
    if (loss < plateau->best * (1 - settings->threshold) || (isinf(plateau->best) && isfinite(loss))) {
        plateau->best = loss;
        plateau->stale = 0;
    } else if (++plateau->stale > settings->patience) { /* NaN is no improvement */
        plateau->stale = 0;
        plateau->cuts++;
    }
}

double optimizer_rate(const optimizer_settings *settings, uint64_t step, uint64_t total_steps, uint64_t cuts)
{
    const double full = settings->learning_rate, least = settings->min_rate;
    const uint64_t warm = settings->warmup_steps, end = settings->decay_steps ? settings->decay_steps : total_steps;
    if (settings->schedule == RATE_ONE_CYCLE)
        return one_cycle(settings, step, end);
    if (step < warm)
        return full * ((double)step + 1) / (double)warm;
    if (settings->schedule == RATE_CONSTANT)
        return full;
    if (settings->schedule == RATE_PLATEAU)
        return fmax(full * pow(settings->gamma, (double)cuts), least);
    const uint64_t t = step - warm;
    if (settings->schedule == RATE_STEP) {
        double rate = settings->step_size ? full * pow(settings->gamma, (double)(t / settings->step_size)) : full;
        return rate < least ? least : rate;
    }
    if (step >= end)
        return least;
    const double p = (double)t / (double)(end - warm);
    if (settings->schedule == RATE_LINEAR)
        return full + (least - full) * p;
    return swing(full, least, p);
}

uint32_t optimizer_moments(const optimizer_settings *settings)
{
    switch (settings->type) {
    case OPTIMIZER_SGD: return settings->momentum != 0 ? 1 : 0;
    case OPTIMIZER_LION: return 1;
    case OPTIMIZER_ADAFACTOR: return 0;
    default: return 2;
    }
}

/* ---- what is kept ---- */

/* The rows of a parameter, as adafactor sees it; a vector has one. */
static uint64_t rows_of(const layer_parameter *about)
{
    return about->rank > 1 ? about->dims[0] : 1;
}

static optimizer_state line_of_values(remat_dtype dtype, uint64_t values)
{
    return (optimizer_state){dtype, 1, {values}, values, dtype_bytes(dtype, values)};
}

static optimizer_state shaped_as(const layer_parameter *about, remat_dtype dtype, uint64_t values)
{
    optimizer_state state = line_of_values(dtype, values);
    state.rank = about->rank;
    memcpy(state.dims, about->dims, sizeof state.dims);
    return state;
}

void optimizer_find_states(const optimizer_settings *settings, const layer_parameter *about, uint64_t values,
                           optimizer_state states[OPTIMIZER_STATES])
{
    static const remat_dtype types[][2] = {[STATE_FP32] = {REMAT_FP32, REMAT_FP32},
                                           [STATE_BF16] = {REMAT_BF16, REMAT_BF16},
                                           [STATE_INT8] = {REMAT_INT8, REMAT_UINT8}};
    memset(states, 0, OPTIMIZER_STATES * sizeof *states);
    if (settings->type == OPTIMIZER_ADAFACTOR) {
        const uint64_t rows = rows_of(about);
        states[STATE_FIRST] = line_of_values(REMAT_FP32, about->rank > 1 ? rows : values);
        if (about->rank > 1)
            states[STATE_SECOND] = line_of_values(REMAT_FP32, rows ? values / rows : 0);
        return;
    }
    for (uint32_t m = 0; m < optimizer_moments(settings); m++) {
        states[STATE_FIRST + m] = shaped_as(about, types[settings->state][m], values);
        if (settings->state == STATE_INT8)
            states[STATE_FIRST_SCALES + m] = line_of_values(REMAT_FP32, (values + MOMENT_BLOCK - 1) / MOMENT_BLOCK);
    }
}

/* ---- a step ---- */

/* 1 - beta^update for beta as the kernel has it: from the second moment's first value of (1 - beta) g^2 it must give
 * back g^2, and 1 - 0.999 in single precision is off by 5e-5. */
static double correction(double beta, uint64_t update)
{
    return (float)(1 - pow((double)(float)beta, (double)update));
}

void optimizer_set_step(const optimizer_settings *settings, uint64_t update, double rate, step_block *block)
{
    block->rate = rate;
    if (settings->type == OPTIMIZER_ADAFACTOR) {
        block->correction1 = pow((double)update, -settings->beta2_decay);
        block->correction2 = fmin(rate, 1 / sqrt((double)update));
    } else if (settings->type == OPTIMIZER_ADAM || settings->type == OPTIMIZER_ADAMW) {
        block->correction1 = correction(settings->beta1, update);
        block->correction2 = correction(settings->beta2, update);
    }
}

static remat_status record_factored(const optimizer_settings *settings, recording *calls, const optimizer_update *u,
                                    double decay)
{
    const size_t rows = rows_of(u->about);
    return record_adafactor(calls, &(op_adafactor){.gradient = u->gradient,
                                                   .weight = u->weight,
                                                   .row_squares = u->states[STATE_FIRST],
                                                   .column_squares = u->states[STATE_SECOND],
                                                   .step = u->step,
                                                   .rows = rows,
                                                   .columns = rows ? u->values / rows : 0,
                                                   .least_scale = settings->least_scale,
                                                   .threshold = settings->update_threshold,
                                                   .decay = decay,
                                                   .number = u->number});
}

remat_status optimizer_record(const optimizer_settings *settings, recording *calls, const optimizer_update *u)
{
    const double decay = u->about->decay ? settings->weight_decay : 0;
    if (settings->type == OPTIMIZER_ADAFACTOR)
        return record_factored(settings, calls, u, decay);
    if (settings->type == OPTIMIZER_SGD)
        return record_sgd(calls, &(op_sgd){.gradient = u->gradient,
                                           .weight = u->weight,
                                           .velocity = u->states[STATE_FIRST],
                                           .velocity_scales = u->states[STATE_FIRST_SCALES],
                                           .step = u->step,
                                           .count = u->values,
                                           .momentum = settings->momentum,
                                           .decay = decay,
                                           .nesterov = settings->nesterov,
                                           .number = u->number,
                                           .offset = u->offset});
    if (settings->type == OPTIMIZER_LION)
        return record_lion(calls, &(op_lion){.gradient = u->gradient,
                                             .weight = u->weight,
                                             .mean = u->states[STATE_FIRST],
                                             .mean_scales = u->states[STATE_FIRST_SCALES],
                                             .step = u->step,
                                             .count = u->values,
                                             .beta1 = settings->beta1,
                                             .beta2 = settings->beta2,
                                             .decay = decay,
                                             .number = u->number,
                                             .offset = u->offset});
    return record_adam(calls, &(op_adam){.gradient = u->gradient,
                                         .weight = u->weight,
                                         .first = u->states[STATE_FIRST],
                                         .second = u->states[STATE_SECOND],
                                         .first_scales = u->states[STATE_FIRST_SCALES],
                                         .second_scales = u->states[STATE_SECOND_SCALES],
                                         .step = u->step,
                                         .count = u->values,
                                         .beta1 = settings->beta1,
                                         .beta2 = settings->beta2,
                                         .epsilon = settings->epsilon,
                                         .decay = decay,
                                         .decoupled = settings->type == OPTIMIZER_ADAMW,
                                         .number = u->number,
                                         .offset = u->offset});
}
