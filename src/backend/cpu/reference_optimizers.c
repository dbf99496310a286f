#include "backend/cpu/reference.h"

#include <tgmath.h>

void reference_sgd(const kernel_run *run, const kernel_sgd *options, size_t count, const real *gradient, real *weight,
                   real *velocity)
{
    const kernel_sgd o = *options;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++) {
        real g = o.scale * gradient[i] + o.decay * weight[i], step = g;
        if (velocity) {
            velocity[i] = o.momentum * velocity[i] + g;
            step = o.nesterov ? g + o.momentum * velocity[i] : velocity[i];
        }
        weight[i] -= o.rate * step;
    }
}

void reference_adam(const kernel_run *run, const kernel_adam *options, size_t count, const real *gradient, real *weight,
                    real *first, real *second)
{
    const kernel_adam o = *options;
    const real rate = o.rate / o.correction1, deviation = sqrt(o.correction2);
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++) {
        real g = o.scale * gradient[i], w = weight[i];
        if (o.decoupled)
            w -= o.rate * o.decay * w;
        else
            g += o.decay * w;
        first[i] = o.beta1 * first[i] + (1 - o.beta1) * g;
        second[i] = o.beta2 * second[i] + (1 - o.beta2) * g * g;
        weight[i] = w - rate * first[i] / (sqrt(second[i]) / deviation + o.epsilon);
    }
}
