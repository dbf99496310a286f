/* The loss sums run over rows or values in order, in one thread. */
#include "backend/cpu/reference.h"

#include <tgmath.h>

double reference_cross_entropy(const kernel_run *run, size_t rows, size_t columns, const real *logits,
                               const int32_t *labels, real factor, real *gradient)
{
    (void)run;
    double loss = 0;
    for (size_t row = 0; row < rows; row++) {
        const real *in = logits + row * columns;
        bool counts = labels[row] >= 0;
        size_t label = counts ? (size_t)labels[row] : 0;
        double largest = (double)in[0], sum = 0;
        for (size_t i = 1; i < columns; i++)
            largest = (double)in[i] > largest ? (double)in[i] : largest;
        for (size_t i = 0; i < columns; i++)
            sum += exp((double)in[i] - largest);
        if (counts)
            loss += log(sum) - ((double)in[label] - largest);
        if (!gradient)
            continue;
        real *out = gradient + row * columns;
        for (size_t i = 0; i < columns; i++) {
            double chance = exp((double)in[i] - largest) / sum;
            out[i] = counts ? (real)((chance - (i == label ? 1 : 0)) * (double)factor) : 0;
        }
    }
    return loss;
}

double reference_squared_error(const kernel_run *run, size_t count, const real *x, const real *target, real factor,
                               real *gradient, bool accumulate)
{
    (void)run;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)x[i] - (double)target[i];
        real slope = 2 * factor * (x[i] - target[i]);
        sum += difference * difference;
        if (gradient)
            gradient[i] = accumulate ? gradient[i] + slope : slope;
    }
    return sum;
}
