/* The losses that are sums over values, one value at a time, in double. */
#ifndef REMAT_BACKEND_CPU_POINTWISE_LOSS_H
#define REMAT_BACKEND_CPU_POINTWISE_LOSS_H

#include "backend/operation.h"

/* The loss of one value. *slope gets its derivative along x. */
static inline double pointwise_loss_of(const op_pointwise_loss *p, double x, double target, double *slope)
{
    if (p->kind == LOSS_HUBER) {
        double difference = x - target, distance = fabs(difference), limit = p->parameter;
        if (distance <= limit) {
            *slope = difference;
            return 0.5 * difference * difference;
        }
        *slope = difference > 0 ? limit : difference < 0 ? -limit : difference; /* NaN stays NaN */
        return limit * (distance - 0.5 * limit);
    }
    /* -weight * target * log(s) - (1 - target) * log(1 - s), where s = 1 / (1 + exp(-x)). The exponential never overflows. */
    double small = exp(-fabs(x)), weight = 1 + (p->parameter - 1) * target;
    double opposite = x > 0 ? small / (1 + small) : 1 / (1 + small); /* 1 - s */
    *slope = (1 - target) - weight * opposite;
    return (1 - target) * x + weight * (log1p(small) + (x < 0 ? -x : 0));
}

#endif
