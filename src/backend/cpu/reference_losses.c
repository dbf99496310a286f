/* The loss sums run over rows or values in order, in one thread. */
#include "backend/cpu/reference.h"

#include <tgmath.h>

void REFERENCE(cross_entropy)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_cross_entropy *p = args;
    const int32_t *labels = p->labels.at;
    const size_t columns = p->columns;
    const real factor = (real)p->factor;
    step_block *block = p->step.at;
    double loss = 0;
    for (size_t row = 0; row < p->rows; row++) {
        const real *in = (const real *)p->logits.at + row * columns;
        bool counts = labels[row] >= 0;
        size_t label = counts ? (size_t)labels[row] : 0;
        double largest = (double)in[0], sum = 0;
        for (size_t i = 1; i < columns; i++)
            largest = (double)in[i] > largest ? (double)in[i] : largest;
        for (size_t i = 0; i < columns; i++)
            sum += exp((double)in[i] - largest);
        if (counts)
            loss += log(sum) - ((double)in[label] - largest);
        if (!p->gradient.at)
            continue;
        real *out = (real *)p->gradient.at + row * columns;
        for (size_t i = 0; i < columns; i++) {
            double chance = exp((double)in[i] - largest) / sum;
            out[i] = counts ? (real)((chance - (i == label ? 1 : 0)) * (double)factor) : 0;
        }
    }
    block->loss_sum += loss;
}

void REFERENCE(squared_error)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_squared_error *p = args;
    const real *x = p->x.at, *target = p->target.at, factor = (real)p->factor;
    real *gradient = p->gradient.at;
    step_block *block = p->step.at;
    double sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        double difference = (double)x[i] - (double)target[i];
        real slope = 2 * factor * (x[i] - target[i]);
        sum += difference * difference;
        if (gradient)
            gradient[i] = p->accumulate ? gradient[i] + slope : slope;
    }
    block->loss_sum += sum;
}

void REFERENCE(count_correct)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_count_correct *p = args;
    const int32_t *labels = p->labels.at;
    step_block *block = p->step.at;
    for (size_t row = 0; row < p->rows; row++) {
        const real *logits = (const real *)p->logits.at + row * p->columns;
        size_t best = 0;
        for (size_t i = 1; i < p->columns; i++)
            if (logits[i] > logits[best])
                best = i;
        block->correct += labels[row] >= 0 && (size_t)labels[row] == best;
    }
}
