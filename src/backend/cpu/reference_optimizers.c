#include "backend/cpu/reference.h"

#include <tgmath.h>

static void sgd_range(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_sgd *p = loop->args;
    const step_block *block = p->step.at;
    const real rate = (real)block->rate, scale = (real)block->scale;
    const real momentum = (real)p->momentum, decay = (real)p->decay, *gradient = p->gradient.at;
    real *weight = p->weight.at, *velocity = p->velocity.at;
    for (size_t i = range.begin; i < range.end; i++) {
        if (!isfinite(rate * gradient[i])) {
            *loop->finite = false;
            continue;
        }
        real g = scale * gradient[i] + decay * weight[i], step = g;
        if (velocity) {
            velocity[i] = momentum * velocity[i] + g;
            step = p->nesterov ? g + momentum * velocity[i] : velocity[i];
        }
        weight[i] -= rate * step;
    }
}

void REFERENCE(sgd)(const kernel_run *run, const void *args)
{
    const op_sgd *p = args;
    step_block *block = p->step.at;
    atomic_bool finite = true;
    if (!step_is_finite(block))
        return;
    parallel_static(run->threads, p->count, sgd_range, &(finite_loop){p, &finite});
    if (!finite)
        block->broken = 1 + p->number;
}

static void adam_range(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_adam *p = loop->args;
    const step_block *block = p->step.at;
    const real scale = (real)block->scale, beta1 = (real)p->beta1, beta2 = (real)p->beta2;
    const real epsilon = (real)p->epsilon, shrink = (real)block->rate * (real)p->decay, decay = (real)p->decay;
    const real rate = (real)block->rate / (real)block->correction1, deviation = sqrt((real)block->correction2);
    const real *gradient = p->gradient.at;
    real *weight = p->weight.at, *first = p->first.at, *second = p->second.at;
    for (size_t i = range.begin; i < range.end; i++) {
        if (!isfinite(gradient[i])) {
            *loop->finite = false;
            continue;
        }
        real g = scale * gradient[i], w = weight[i];
        if (p->decoupled)
            w -= shrink * w;
        else
            g += decay * w;
        first[i] = beta1 * first[i] + (1 - beta1) * g;
        second[i] = beta2 * second[i] + (1 - beta2) * g * g;
        weight[i] = w - rate * first[i] / (sqrt(second[i]) / deviation + epsilon);
    }
}

void REFERENCE(adam)(const kernel_run *run, const void *args)
{
    const op_adam *p = args;
    step_block *block = p->step.at;
    atomic_bool finite = true;
    if (!step_is_finite(block))
        return;
    parallel_static(run->threads, p->count, adam_range, &(finite_loop){p, &finite});
    if (!finite)
        block->broken = 1 + p->number;
}
