#include "backend/cpu/fast_block.h"
#include "backend/cpu/fast_row.h"
#include "backend/cpu/pointwise_loss.h"

static double factor_of(const op_cross_entropy *p)
{
    return p->by_labels ? p->factor / step_labels(p->step.at) : p->factor;
}

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

/* The sum of weight * (x - offset), in double; without weights all are 1. */
static double weighted_sum(size_t count, const float *x, double offset, const double *weights)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        sums[i % SUMS] += ((double)x[i] - offset) * (weights ? weights[i] : 1);
    for (size_t k = 0; k < SUMS; k++)
        sum += sums[k];
    return sum;
}

/* The shares of the columns in the target of a row, times their weights: `each` for all of them, and `label` more for the
 * label. */
typedef struct target_shares {
    double each, label, sum;
} target_shares;

static target_shares shares_of(const op_cross_entropy *p, int32_t label, double weight_sum)
{
    double each = p->smoothing / (double)p->columns;
    double more = (1 - p->smoothing) * (p->weights ? p->weights[label] : 1);
    return (target_shares){each, more, more + each * weight_sum};
}

/* The same with smoothing or weights. */
static double smoothed_row(const op_cross_entropy *p, const float *logits, int32_t label, double weight_sum,
                           float *gradient)
{
    const size_t columns = p->columns;
    if (label < 0)
        return cross_entropy_row(columns, logits, label, 0, gradient);
    target_shares shares = shares_of(p, label, weight_sum);
    float largest = fast_row_max(columns, logits);
    double heights = shares.label * ((double)logits[label] - (double)largest);
    if (shares.each > 0)
        heights += shares.each * weighted_sum(columns, logits, (double)largest, p->weights);
    float sum = fast_row_exp(columns, logits, largest, gradient);
    if (gradient) {
        const double factor = factor_of(p);
        fast_row_scale(columns, (float)(factor * shares.sum / (double)sum), gradient);
        for (size_t i = 0; i < columns && shares.each > 0; i++)
            gradient[i] -= (float)(factor * shares.each * (p->weights ? p->weights[i] : 1));
        gradient[label] -= (float)(factor * shares.label);
    }
    return shares.sum * log((double)sum) - heights;
}

/* ---- logits in bf16 ---- */

enum { HALF_COLUMNS = 1024 }; /* so many at a time are unpacked */

static void unpack_columns(size_t count, const uint16_t *from, float *to)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, LOAD(from + i))
    FAST_EACH_ANY(count, STEP);
#undef STEP
}

static void pack_columns(size_t count, const float *from, uint16_t *to)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, LOAD(from + i))
    FAST_EACH_ANY(count, STEP);
#undef STEP
}

#define EACH_HALF_BLOCK(columns, at, count) \
    for (size_t at = 0, count; at < (columns) && (count = smaller((columns)-at, HALF_COLUMNS), true); at += count)

static void half_row_gradient(const op_cross_entropy *p, const target_shares *shares, int32_t label, float largest,
                              double sum, const uint16_t *logits, uint16_t *gradient)
{
    float block[HALF_COLUMNS];
    const double factor = factor_of(p);
    EACH_HALF_BLOCK(p->columns, at, count)
    {
        unpack_columns(count, logits + at, block);
        fast_row_exp(count, block, largest, block);
        fast_row_scale(count, (float)(factor * shares->sum / sum), block);
        for (size_t i = 0; i < count && shares->each > 0; i++)
            block[i] -= (float)(factor * shares->each * (p->weights ? p->weights[at + i] : 1));
        if ((size_t)label >= at && (size_t)label - at < count)
            block[(size_t)label - at] -= (float)(factor * shares->label);
        pack_columns(count, block, gradient + at);
    }
}

/* The loss of one row, with or without smoothing and weights. The gradient may replace the logits. */
static double half_row(const op_cross_entropy *p, const uint16_t *logits, int32_t label, double weight_sum,
                       uint16_t *gradient)
{
    float block[HALF_COLUMNS], largest = 0;
    double sum = 0;
    if (label < 0) {
        if (gradient)
            memset(gradient, 0, p->columns * sizeof *gradient);
        return 0;
    }
    EACH_HALF_BLOCK(p->columns, at, count)
    {
        unpack_columns(count, logits + at, block);
        const float here = fast_row_max(count, block);
        largest = at == 0 || here > largest ? here : largest;
    }
    const target_shares shares = shares_of(p, label, weight_sum);
    unpack_columns(1, logits + label, block);
    double heights = shares.label * ((double)block[0] - (double)largest);
    EACH_HALF_BLOCK(p->columns, at, count)
    {
        unpack_columns(count, logits + at, block);
        if (shares.each > 0)
            heights += shares.each * weighted_sum(count, block, (double)largest, p->weights ? p->weights + at : NULL);
        sum += (double)fast_row_exp(count, block, largest, NULL);
    }
    if (gradient)
        half_row_gradient(p, &shares, label, largest, sum, logits, gradient);
    return shares.sum * log(sum) - heights;
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
    const float factor = (float)factor_of(p);
    const int32_t *labels = p->labels.at;
    const size_t rows = p->rows, columns = p->columns, parts = loop->parts;
    const bool plain = p->smoothing == 0 && !p->weights;
    double weight_sum = (double)columns;
    if (p->weights) {
        weight_sum = 0;
        for (size_t i = 0; i < columns; i++)
            weight_sum += p->weights[i];
    }
    for (size_t part = range.begin; part < range.end; part++) {
        double sum = 0;
        for (size_t row = fast_cut(rows, parts, part); row < fast_cut(rows, parts, part + 1); row++) {
            const void *in = tensor_from(p->logits, row * columns).at;
            void *out = tensor_from(p->gradient, row * columns).at;
            sum += p->logits.type == REMAT_BF16 ? half_row(p, in, labels[row], weight_sum, out)
                   : plain                      ? cross_entropy_row(columns, in, labels[row], factor, out)
                                                : smoothed_row(p, in, labels[row], weight_sum, out);
        }
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

static void pointwise_parts(const void *args, parallel_range range)
{
    const loss_loop *loop = args;
    const op_pointwise_loss *p = loop->args;
    const float *x = p->x.at, *target = p->target.at;
    float *gradient = p->gradient.at;
    for (size_t part = range.begin; part < range.end; part++) {
        double sum = 0, slope;
        for (size_t i = fast_cut(p->count, loop->parts, part); i < fast_cut(p->count, loop->parts, part + 1); i++) {
            sum += pointwise_loss_of(p, (double)x[i], (double)target[i], &slope);
            if (gradient)
                gradient[i] = (p->accumulate ? gradient[i] : 0) + (float)(slope * p->factor);
        }
        loop->sums[part] = sum;
    }
}

void FAST(pointwise_loss)(const kernel_run *run, const void *args)
{
    const op_pointwise_loss *p = args;
    step_block *block = p->step.at;
    const loss_loop loop = {p, run->scratch, fast_parts(p->count, FAST_BLOCK)};
    parallel_static(fast_threads(run, p->count), loop.parts, pointwise_parts, &loop);
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

static bool half_row_is_correct(size_t columns, const uint16_t *logits, int32_t label)
{
    float block[HALF_COLUMNS], largest = 0;
    size_t best = 0;
    EACH_HALF_BLOCK(columns, at, count)
    {
        unpack_columns(count, logits + at, block);
        largest = at == 0 ? block[0] : largest;
        for (size_t i = 0; i < count; i++)
            if (block[i] > largest) {
                largest = block[i];
                best = at + i;
            }
    }
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
    const int32_t *labels = p->labels.at;
    uint64_t correct = 0;
    for (size_t row = range.begin; row < range.end; row++) {
        const void *logits = tensor_from(p->logits, row * p->columns).at;
        correct += p->logits.type == REMAT_BF16 ? half_row_is_correct(p->columns, logits, labels[row])
                                                : row_is_correct(p->columns, logits, labels[row]);
    }
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
