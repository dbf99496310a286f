#include "backend/cpu/fast_row.h"

/* The loss of one row. The gradient replaces the exponentials while the row is in cache. */
static double cross_entropy_row(size_t columns, const float *logits, int32_t label, float factor, float *gradient)
{
    if (label < 0) {
        if (gradient)
            memset(gradient, 0, columns * sizeof *gradient);
        return 0;
    }
    float largest = fast_row_max(columns, logits);
    double height = (double)logits[label] - (double)largest; /* read before the gradient may overwrite it */
    float sum = fast_row_exp(columns, logits, largest, gradient);
    if (gradient) {
        fast_row_scale(columns, factor / sum, gradient);
        gradient[label] -= factor;
    }
    return log((double)sum) - height;
}

void FAST(cross_entropy)(const kernel_run *run, const void *args)
{
    const op_cross_entropy *p = args;
    const float *logits = p->logits.at, factor = (float)p->factor;
    const int32_t *labels = p->labels.at;
    float *gradient = p->gradient.at;
    step_block *block = p->step.at;
    double *losses = (double *)run->scratch, loss = 0;
    const size_t rows = p->rows, columns = p->columns, parts = fast_parts(rows, 1);
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t part = 0; part < parts; part++) {
        double sum = 0;
        for (size_t row = fast_cut(rows, parts, part); row < fast_cut(rows, parts, part + 1); row++)
            sum += cross_entropy_row(columns, logits + row * columns, labels[row], factor,
                                     gradient ? gradient + row * columns : NULL);
        losses[part] = sum;
    }
    for (size_t part = 0; part < parts; part++)
        loss += losses[part];
    block->loss_sum += loss;
}

static double squared_differences(size_t count, const float *x, const float *target)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0}, sum = 0;
    size_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            double difference = (double)x[i + k] - (double)target[i + k];
            sums[k] = fast_fma_double(difference, difference, sums[k]);
        }
    for (size_t k = 0; i < count; i++, k++) {
        double difference = (double)x[i] - (double)target[i];
        sums[k] = fast_fma_double(difference, difference, sums[k]);
    }
    for (size_t k = 0; k < SUMS; k++)
        sum += sums[k];
    return sum;
}

static void difference_block(size_t count, const float *x, const float *target, float factor, float *dx,
                             bool accumulate)
{
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(dx + i, fast_fma(LOAD(x + i) - LOAD(target + i), fast_repeat(factor), LOAD(dx + i)))
        FAST_EACH(count, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, (LOAD(x + i) - LOAD(target + i)) * factor)
        FAST_EACH(count, STEP);
#undef STEP
    }
}

void FAST(squared_error)(const kernel_run *run, const void *args)
{
    const op_squared_error *p = args;
    const float *x = p->x.at, *target = p->target.at, factor = (float)p->factor;
    float *gradient = p->gradient.at;
    step_block *block = p->step.at;
    double *sums = (double *)run->scratch, sum = 0;
    const size_t count = p->count, parts = fast_parts(count, FAST_BLOCK);
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t part = 0; part < parts; part++) {
        size_t first = fast_cut(count, parts, part), length = fast_cut(count, parts, part + 1) - first;
        sums[part] = squared_differences(length, x + first, target + first);
        if (gradient)
            difference_block(length, x + first, target + first, 2.0f * factor, gradient + first, p->accumulate);
    }
    for (size_t part = 0; part < parts; part++)
        sum += sums[part];
    block->loss_sum += sum;
}

static bool row_is_correct(size_t columns, const float *logits, int32_t label)
{
    size_t best = 0;
    for (size_t i = 1; i < columns; i++)
        if (logits[i] > logits[best])
            best = i;
    return label >= 0 && (size_t)label == best;
}

void FAST(count_correct)(const kernel_run *run, const void *args)
{
    const op_count_correct *p = args;
    const float *logits = p->logits.at;
    const int32_t *labels = p->labels.at;
    step_block *block = p->step.at;
    const size_t rows = p->rows, columns = p->columns;
    uint64_t correct = 0;
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static) reduction(+ : correct)
    for (size_t row = 0; row < rows; row++)
        correct += row_is_correct(columns, logits + row * columns, labels[row]);
    block->correct += correct;
}
