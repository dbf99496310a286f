/* The loss sums run over rows or values in order, in one thread. */
#include "backend/cpu/pointwise_loss.h"
#include "backend/cpu/reference.h"

#include <tgmath.h>

/* The share of a column in the target of a row, times its weight. */
static double column_share(const op_cross_entropy *p, size_t label, size_t column)
{
    double share = p->smoothing / (double)p->columns + (column == label ? 1 - p->smoothing : 0);
    return p->weights ? share * p->weights[column] : share;
}

void REFERENCE(cross_entropy)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_cross_entropy *p = args;
    const int32_t *labels = p->labels.at;
    const size_t columns = p->columns;
    step_block *block = p->step.at;
    const real factor = (real)(p->by_labels ? p->factor / step_labels(block) : p->factor);
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
        double shares = 0;
        for (size_t i = 0; i < columns; i++)
            shares += column_share(p, label, i);
        for (size_t i = 0; counts && i < columns; i++)
            if (column_share(p, label, i) != 0) /* a logit may be -infinity there */
                loss += column_share(p, label, i) * (log(sum) - ((double)in[i] - largest));
        if (!p->gradient.at)
            continue;
        real *out = (real *)p->gradient.at + row * columns;
        for (size_t i = 0; i < columns; i++) {
            double chance = exp((double)in[i] - largest) / sum;
            out[i] = counts ? (real)((shares * chance - column_share(p, label, i)) * (double)factor) : 0;
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

void REFERENCE(pointwise_loss)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_pointwise_loss *p = args;
    const real *x = p->x.at, *target = p->target.at;
    real *gradient = p->gradient.at;
    step_block *block = p->step.at;
    double sum = 0, slope;
    for (size_t i = 0; i < p->count; i++) {
        sum += pointwise_loss_of(p, (double)x[i], (double)target[i], &slope);
        if (gradient)
            gradient[i] = (real)((p->accumulate ? (double)gradient[i] : 0) + slope * p->factor);
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
