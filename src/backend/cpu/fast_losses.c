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

/* A loss is summed in parts. */
typedef struct loss_loop {
    const void *args;
    double *sums;
    size_t parts;
} loss_loop;

static double add_sums(const loss_loop *loop)
{
    double sum = 0;
    for (size_t part = 0; part < loop->parts; part++)
        sum += loop->sums[part];
    return sum;
}

static void cross_entropy_parts(const void *args, parallel_range range)
{
    const loss_loop *loop = args;
    const op_cross_entropy *p = loop->args;
    const float *logits = p->logits.at, factor = (float)p->factor;
    const int32_t *labels = p->labels.at;
    float *gradient = p->gradient.at;
    const size_t rows = p->rows, columns = p->columns, parts = loop->parts;
    for (size_t part = range.begin; part < range.end; part++) {
        double sum = 0;
        for (size_t row = fast_cut(rows, parts, part); row < fast_cut(rows, parts, part + 1); row++)
            sum += cross_entropy_row(columns, logits + row * columns, labels[row], factor,
                                     gradient ? gradient + row * columns : NULL);
        loop->sums[part] = sum;
    }
}

void FAST(cross_entropy)(const kernel_run *run, const void *args)
{
    const op_cross_entropy *p = args;
    step_block *block = p->step.at;
    const loss_loop loop = {p, run->scratch, fast_parts(p->rows, 1)};
    parallel_static(fast_threads(run, p->rows * p->columns), loop.parts, cross_entropy_parts, &loop);
    block->loss_sum += add_sums(&loop);
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

static void squared_error_parts(const void *args, parallel_range range)
{
    const loss_loop *loop = args;
    const op_squared_error *p = loop->args;
    const float *x = p->x.at, *target = p->target.at, factor = (float)p->factor;
    float *gradient = p->gradient.at;
    for (size_t part = range.begin; part < range.end; part++) {
        size_t first = fast_cut(p->count, loop->parts, part);
        size_t length = fast_cut(p->count, loop->parts, part + 1) - first;
        loop->sums[part] = squared_differences(length, x + first, target + first);
        if (gradient)
            difference_block(length, x + first, target + first, 2.0f * factor, gradient + first, p->accumulate);
    }
}

void FAST(squared_error)(const kernel_run *run, const void *args)
{
    const op_squared_error *p = args;
    step_block *block = p->step.at;
    const loss_loop loop = {p, run->scratch, fast_parts(p->count, FAST_BLOCK)};
    parallel_static(fast_threads(run, p->count), loop.parts, squared_error_parts, &loop);
    block->loss_sum += add_sums(&loop);
}

static bool row_is_correct(size_t columns, const float *logits, int32_t label)
{
    size_t best = 0;
    for (size_t i = 1; i < columns; i++)
        if (logits[i] > logits[best])
            best = i;
    return label >= 0 && (size_t)label == best;
}

typedef struct count_loop {
    const op_count_correct *args;
    _Atomic uint64_t *correct;
} count_loop;

static void count_rows(const void *args, parallel_range range)
{
    const count_loop *loop = args;
    const op_count_correct *p = loop->args;
    const float *logits = p->logits.at;
    const int32_t *labels = p->labels.at;
    uint64_t correct = 0;
    for (size_t row = range.begin; row < range.end; row++)
        correct += row_is_correct(p->columns, logits + row * p->columns, labels[row]);
    *loop->correct += correct;
}

void FAST(count_correct)(const kernel_run *run, const void *args)
{
    const op_count_correct *p = args;
    step_block *block = p->step.at;
    _Atomic uint64_t correct = 0;
    parallel_static(fast_threads(run, p->rows * p->columns), p->rows, count_rows, &(count_loop){p, &correct});
    block->correct += correct;
}
