#include "backend/cpu/reference_moments.h"

#include <tgmath.h>

static bool all_finite(size_t count, const real *x, real factor)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(factor * x[i]))
            return false;
    return true;
}

/* A pass of the loops below is a block. */
static void run_blocks(const kernel_run *run, parallel_part *part, const void *args, size_t count, step_block *step,
                       uint64_t number)
{
    atomic_bool finite = true;
    if (!step_is_finite(step))
        return;
    parallel_static(run->threads, moment_blocks(count), part, &(finite_loop){args, &finite});
    if (!finite)
        step->broken = 1 + number;
}

static void sgd_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_sgd *p = loop->args;
    const step_block *block = p->step.at;
    const remat_random random = moment_stream(block, p->number), weight_random = weight_stream(block, p->number);
    const real rate = (real)block->rate, scale = (real)block->scale;
    const real momentum = (real)p->momentum, decay = (real)p->decay;
    for (size_t b = range.begin; b < range.end; b++) {
        const size_t from = b * MOMENT_BLOCK, count = moment_block_length(p->count, from);
        const real *gradient = (const real *)p->gradient.at + from;
        real weight[MOMENT_BLOCK], velocity[MOMENT_BLOCK] = {0};
        if (!all_finite(count, gradient, rate)) {
            *loop->finite = false;
            continue;
        }
        moment_unpack(p->weight, TENSOR_NONE, from, count, weight);
        moment_unpack(p->velocity, p->velocity_scales, from, count, velocity);
        for (size_t i = 0; i < count; i++) {
            real g = scale * gradient[i] + decay * weight[i], step = g;
            if (p->velocity.at) {
                velocity[i] = momentum * velocity[i] + g;
                step = p->nesterov ? g + momentum * velocity[i] : velocity[i];
            }
            weight[i] -= rate * step;
        }
        moment_pack(p->weight, TENSOR_NONE, from, count, weight, &weight_random, p->offset, 0);
        moment_pack(p->velocity, p->velocity_scales, from, count, velocity, &random, p->offset, 0);
    }
}

void REFERENCE(sgd)(const kernel_run *run, const void *args)
{
    const op_sgd *p = args;
    run_blocks(run, sgd_blocks, p, p->count, p->step.at, p->number);
}

static void adam_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_adam *p = loop->args;
    const step_block *block = p->step.at;
    const remat_random random = moment_stream(block, p->number), weight_random = weight_stream(block, p->number);
    const real scale = (real)block->scale, beta1 = (real)p->beta1, beta2 = (real)p->beta2;
    const real epsilon = (real)p->epsilon, shrink = (real)block->rate * (real)p->decay, decay = (real)p->decay;
    const real rate = (real)block->rate / (real)block->correction1, deviation = sqrt((real)block->correction2);
    for (size_t b = range.begin; b < range.end; b++) {
        const size_t from = b * MOMENT_BLOCK, count = moment_block_length(p->count, from);
        const real *gradient = (const real *)p->gradient.at + from;
        real weight[MOMENT_BLOCK], first[MOMENT_BLOCK], second[MOMENT_BLOCK];
        if (!all_finite(count, gradient, 1)) {
            *loop->finite = false;
            continue;
        }
        moment_unpack(p->weight, TENSOR_NONE, from, count, weight);
        moment_unpack(p->first, p->first_scales, from, count, first);
        moment_unpack(p->second, p->second_scales, from, count, second);
        for (size_t i = 0; i < count; i++) {
            real g = scale * gradient[i], w = weight[i];
            if (p->decoupled)
                w -= shrink * w;
            else
                g += decay * w;
            first[i] = beta1 * first[i] + (1 - beta1) * g;
            second[i] = beta2 * second[i] + (1 - beta2) * g * g;
            weight[i] = w - rate * first[i] / (sqrt(second[i]) / deviation + epsilon);
        }
        moment_pack(p->weight, TENSOR_NONE, from, count, weight, &weight_random, p->offset, 0);
        moment_pack(p->first, p->first_scales, from, count, first, &random, p->offset, 0);
        moment_pack(p->second, p->second_scales, from, count, second, &random, p->offset, 1);
    }
}

void REFERENCE(adam)(const kernel_run *run, const void *args)
{
    const op_adam *p = args;
    run_blocks(run, adam_blocks, p, p->count, p->step.at, p->number);
}

static void lion_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_lion *p = loop->args;
    const step_block *block = p->step.at;
    const remat_random random = moment_stream(block, p->number), weight_random = weight_stream(block, p->number);
    const real rate = (real)block->rate, scale = (real)block->scale, shrink = rate * (real)p->decay;
    const real beta1 = (real)p->beta1, beta2 = (real)p->beta2;
    for (size_t b = range.begin; b < range.end; b++) {
        const size_t from = b * MOMENT_BLOCK, count = moment_block_length(p->count, from);
        const real *gradient = (const real *)p->gradient.at + from;
        real weight[MOMENT_BLOCK], mean[MOMENT_BLOCK];
        if (!all_finite(count, gradient, 1)) {
            *loop->finite = false;
            continue;
        }
        moment_unpack(p->weight, TENSOR_NONE, from, count, weight);
        moment_unpack(p->mean, p->mean_scales, from, count, mean);
        for (size_t i = 0; i < count; i++) {
            const real g = scale * gradient[i], direction = beta1 * mean[i] + (1 - beta1) * g;
            weight[i] -= shrink * weight[i];
            weight[i] -= direction > 0 ? rate : direction < 0 ? -rate : 0;
            mean[i] = beta2 * mean[i] + (1 - beta2) * g;
        }
        moment_pack(p->weight, TENSOR_NONE, from, count, weight, &weight_random, p->offset, 0);
        moment_pack(p->mean, p->mean_scales, from, count, mean, &random, p->offset, 0);
    }
}

void REFERENCE(lion)(const kernel_run *run, const void *args)
{
    const op_lion *p = args;
    run_blocks(run, lion_blocks, p, p->count, p->step.at, p->number);
}

/* ---- adafactor ---- */

/* Squares of the gradient, in their means over rows and columns, or value by value. */
static void update_squares(const op_adafactor *p)
{
    const step_block *block = p->step.at;
    const real *gradient = p->gradient.at;
    real *of_rows = p->row_squares.at, *of_columns = p->column_squares.at;
    const double share = block->correction1, scale = block->scale;
    for (size_t r = 0; r < p->rows && of_columns; r++) {
        double sum = 0;
        for (size_t c = 0; c < p->columns; c++) {
            const double g = scale * (double)gradient[r * p->columns + c];
            sum += g * g;
        }
        of_rows[r] = (real)((double)of_rows[r] + share * (sum / (double)p->columns - (double)of_rows[r]));
    }
    for (size_t c = 0; c < p->columns; c++) {
        double sum = 0;
        real *square = of_columns ? &of_columns[c] : &of_rows[c];
        for (size_t r = 0; r < p->rows; r++) {
            const double g = scale * (double)gradient[r * p->columns + c];
            sum += g * g;
        }
        *square = (real)((double)*square + share * (sum / (double)p->rows - (double)*square));
    }
}

/* The gradient of a value, divided by the root of its mean square. */
static double adafactor_update(const op_adafactor *p, double mean, size_t row, size_t column)
{
    const step_block *block = p->step.at;
    const real *gradient = p->gradient.at, *of_rows = p->row_squares.at, *of_columns = p->column_squares.at;
    const double least = OPERATION_ADAFACTOR_EPSILON * OPERATION_ADAFACTOR_EPSILON;
    const double square =
        of_columns ? (double)of_rows[row] * (double)of_columns[column] / mean : (double)of_rows[column];
    return block->scale * (double)gradient[row * p->columns + column] / sqrt(square > least ? square : least);
}

void REFERENCE(adafactor)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_adafactor *p = args;
    step_block *block = p->step.at;
    const real *of_rows = p->row_squares.at;
    const remat_random random = weight_stream(block, p->number);
    const double count = (double)p->rows * (double)p->columns;
    if (!step_is_finite(block) || count == 0)
        return;
    if (!all_finite(p->rows * p->columns, p->gradient.at, 1)) {
        block->broken = 1 + p->number;
        return;
    }
    update_squares(p);
    double mean = 0, weights = 0, updates = 0;
    for (size_t r = 0; r < p->rows && p->column_squares.at; r++)
        mean += (double)of_rows[r] / (double)p->rows;
    mean = mean > OPERATION_ADAFACTOR_EPSILON ? mean : OPERATION_ADAFACTOR_EPSILON;
    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c < p->columns; c++) {
            const double u = adafactor_update(p, mean, r, c);
            real w = 0;
            moment_unpack(p->weight, TENSOR_NONE, r * p->columns + c, 1, &w);
            weights += (double)w * (double)w;
            updates += u * u;
        }
    const double size = sqrt(weights / count), length = sqrt(updates / count) / p->threshold;
    const double rate =
        (size > p->least_scale ? size : p->least_scale) * block->correction2 / (length > 1 ? length : 1);
    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c < p->columns; c++) {
            const size_t at = r * p->columns + c;
            real w = 0;
            moment_unpack(p->weight, TENSOR_NONE, at, 1, &w);
            w = (real)((double)w * (1 - block->rate * p->decay) - rate * adafactor_update(p, mean, r, c));
            moment_pack(p->weight, TENSOR_NONE, at, 1, &w, &random, 0, 0);
        }
}
