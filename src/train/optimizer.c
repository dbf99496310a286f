#include "train/optimizer.h"

#include <math.h>

double optimizer_rate(const optimizer_settings *settings, uint64_t step, uint64_t total_steps)
{
    const double full = settings->learning_rate, least = settings->min_rate;
    const uint64_t warm = settings->warmup_steps, end = settings->decay_steps ? settings->decay_steps : total_steps;
    if (step < warm)
        return full * ((double)step + 1) / (double)warm;
    if (settings->schedule == RATE_CONSTANT)
        return full;
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
    return least + (full - least) * (1 + cos(M_PI * p)) / 2;
}

uint32_t optimizer_moments(const optimizer_settings *settings)
{
    if (settings->type == OPTIMIZER_SGD)
        return settings->momentum != 0 ? 1 : 0;
    return 2;
}

/* 1 - beta^step for beta as the kernel has it: from the second moment's first value of (1 - beta) g^2 it must give
 * back g^2, and 1 - 0.999 in single precision is off by 5e-5. */
static real correction(real beta, uint64_t step)
{
    return (real)(1 - pow((double)beta, (double)step));
}

void optimizer_apply(const kernel_table *kernels, const kernel_run *run, const optimizer_settings *settings,
                     uint64_t step, double rate, double scale, bool decay_applies, size_t count, const real *gradient,
                     real *weight, real *const moments[OPTIMIZER_MAX_MOMENTS])
{
    const real decay = decay_applies ? (real)settings->weight_decay : 0;
    if (settings->type == OPTIMIZER_SGD) {
        kernel_sgd sgd = {
            .rate = (real)rate,
            .momentum = (real)settings->momentum,
            .decay = decay,
            .scale = (real)scale,
            .nesterov = settings->nesterov,
        };
        kernels->sgd(run, &sgd, count, gradient, weight, optimizer_moments(settings) ? moments[0] : NULL);
        return;
    }
    const real beta1 = (real)settings->beta1, beta2 = (real)settings->beta2;
    kernel_adam adam = {
        .rate = (real)rate,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = (real)settings->epsilon,
        .decay = decay,
        .scale = (real)scale,
        .decoupled = settings->type == OPTIMIZER_ADAMW,
        .correction1 = correction(beta1, step),
        .correction2 = correction(beta2, step),
    };
    kernels->adam(run, &adam, count, gradient, weight, moments[0], moments[1]);
}
