#include "train/optimizer.h"

#include <math.h>

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
    if (settings->type == OPTIMIZER_SGD)
        return settings->momentum != 0 ? 1 : 0;
    return 2;
}

/* 1 - beta^update for beta as the kernel has it: from the second moment's first value of (1 - beta) g^2 it must give
 * back g^2, and 1 - 0.999 in single precision is off by 5e-5. */
static double correction(double beta, uint64_t update)
{
    return (float)(1 - pow((double)(float)beta, (double)update));
}

void optimizer_set_step(const optimizer_settings *settings, uint64_t update, double rate, step_block *block)
{
    block->rate = rate;
    if (settings->type == OPTIMIZER_SGD)
        return;
    block->correction1 = correction(settings->beta1, update);
    block->correction2 = correction(settings->beta2, update);
}

remat_status optimizer_record(const optimizer_settings *settings, recording *calls, tensor_ref step, uint64_t number,
                              bool decay_applies, size_t count, tensor_ref gradient, tensor_ref weight,
                              const tensor_ref moments[OPTIMIZER_MAX_MOMENTS])
{
    const double decay = decay_applies ? settings->weight_decay : 0;
    if (settings->type == OPTIMIZER_SGD)
        return record_sgd(calls, &(op_sgd){.gradient = gradient,
                                           .weight = weight,
                                           .velocity = moments[0],
                                           .step = step,
                                           .count = count,
                                           .momentum = settings->momentum,
                                           .decay = decay,
                                           .nesterov = settings->nesterov,
                                           .number = number});
    return record_adam(calls, &(op_adam){.gradient = gradient,
                                         .weight = weight,
                                         .first = moments[0],
                                         .second = moments[1],
                                         .step = step,
                                         .count = count,
                                         .beta1 = settings->beta1,
                                         .beta2 = settings->beta2,
                                         .epsilon = settings->epsilon,
                                         .decay = decay,
                                         .decoupled = settings->type == OPTIMIZER_ADAMW,
                                         .number = number});
}
